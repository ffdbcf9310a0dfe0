package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/history"
)

const (
	// changeLimit is how long an order of an operator may take, statusLimit a look at the cluster.
	changeLimit = 20 * time.Second
	statusLimit = 5 * time.Second
)

// change gives an order to the cluster by a member.
func (m *member) change(do string, fields ...string) error {
	w, err := history.DialHTTP(m.port, askLimit)
	if err != nil {
		return err
	}
	defer w.Close()
	status, out, err := w.Procedure("cluster_change", changeLimit, append([]string{"do", do}, fields...)...)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%d %s", status, out["ERROR"])
	}
	return err
}

// roles asks a member for the roles of all, by their names.
func (m *member) roles() (map[string]string, error) {
	w, err := history.DialHTTP(m.port, askLimit)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	status, out, err := w.Procedure("cluster_status", statusLimit)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, errors.New(out["ERROR"])
	}
	roles := map[string]string{}
	for name, text := range out {
		role, _, _ := strings.Cut(strings.TrimPrefix(text, "role="), " ")
		roles[name] = role
	}
	return roles, nil
}

// streams reports whether a follower has what a primary could begin with.
func (m *member) streams() bool {
	w, err := history.DialHTTP(m.port, askLimit)
	if err != nil {
		return false
	}
	defer w.Close()
	_, out, err := w.Procedure("report", statusLimit)
	return err == nil && out["repl_state"] == "streaming"
}

// settled waits until each of the members is the primary or follows it, and returns the primary.
func (c *cluster) settled(t *testing.T, members ...*member) *member {
	t.Helper()
	var primary *member
	var said any
	good := eventually(patience, func() bool {
		roles, err := members[0].roles()
		if said = roles; err != nil {
			said = err
			return false
		}
		primary = nil
		for _, m := range members {
			switch role := roles[m.name]; {
			case role == "leading":
				primary = m
			case role == "following" && !m.streams():
				said = fmt.Sprintf("member %d has not got its copies yet", m.index)
				return false
			case role != "following" && role != "witness":
				return false
			}
		}
		return primary != nil && len(roles) == len(members)
	})
	require.True(t, good, "after %v: %v", patience, said)
	return primary
}

// An order is given mostOrders times at most: on a busy machine an election may come between.
const (
	mostOrders  = 3
	orderPeriod = 2 * time.Second // after an order that has failed, for the election
)

// ordered gives an order to the primary of the members until the order is obeyed, and returns the
// primary.
func (c *cluster) ordered(t *testing.T, members []*member, do string, fields ...string) (primary *member) {
	t.Helper()
	for n := 1; ; n++ {
		primary = c.settled(t, members...)
		err := primary.change(do, fields...)
		if err == nil {
			return primary
		}
		t.Logf("%s %v: %v", do, fields, err)
		require.Less(t, n, mostOrders)
		time.Sleep(orderPeriod) //lint:sleep nothing tells when an election is over
	}
}

// handsOver gives the order by a member until another one leads.
func handsOver(t *testing.T, by, to *member) {
	t.Helper()
	for n := 1; ; n++ {
		err := by.change("switchover", "name", to.name)
		if err != nil {
			t.Logf("switchover to %d: %v", to.index, err)
		}
		wait := orderPeriod
		if n == mostOrders {
			wait = patience
		}
		leads := eventually(wait, func() bool {
			roles, _ := by.roles()
			return roles[to.name] == "leading"
		})
		if leads {
			return
		}
		require.Less(t, n, mostOrders, "member %d does not become the primary: %v", to.index, err)
	}
}

// TestTimes measures how long nobody takes an update while nothing else is wrong: when the primary
// is killed, when it is stopped, and when another one is wanted.
func TestTimes(t *testing.T) {
	together(t)
	c := newCluster(t, 3, false)
	gaps := &figures{}
	play := start(c, "times", seed(t))
	defer play.end()
	play.serves(t)
	for i := range rounds(t, 4) {
		primary := c.settled(t, c.members...)
		next := c.members[(primary.index+1+i%2)%3]
		play.probe.reset()
		switch i % 2 {
		case 0:
			handsOver(t, next, next)
			play.serves(t)
			gaps.add("switchover", play.probe.gap())
			c.settled(t, c.members...)
		case 1:
			kill := i%4 == 1
			primary.stop(kill)
			play.serves(t)
			gaps.add(map[bool]string{true: "kill", false: "stop"}[kill], play.probe.gap())
			primary.restart()
		}
	}
	play.end()
	t.Log(gaps)
	judge(t, c, play, &tally{})
}

// TestMembership: servers join and leave a cluster under load.
func TestMembership(t *testing.T) {
	together(t)
	c := newCluster(t, 3, false)
	play := start(c, "membership", seed(t))
	defer play.end()
	play.serves(t)
	members := slices.Clone(c.members)
	for i := range rounds(t, 1) {
		// A new one joins.
		joining := c.add(false)
		joining.start("")
		c.joins(t, members, joining)
		members = append(members, joining)
		c.settled(t, members...)
		play.serves(t)
		play.learn(members)

		c.ordered(t, members, "require", "number", "2")
		play.serves(t)

		// One is dead or leaves, the primary too.
		leaving := members[i%3]
		if i%2 == 0 {
			leaving.stop(true)
			require.True(t, eventually(patience, func() bool {
				return other(members, leaving).change("require", "number", "1") == nil
			}))
		} else if c.ordered(t, members, "require", "number", "1") == leaving {
			handsOver(t, leaving, other(members, leaving))
		}
		require.True(t, eventually(patience, func() bool {
			err := other(members, leaving).change("remove", "name", leaving.name)
			if err != nil {
				t.Logf("remove %d: %v", leaving.index, err)
			}
			return err == nil
		}))
		members = slices.DeleteFunc(members, func(m *member) bool { return m == leaving })
		play.learn(members)
		leaving.stop(true)
		leaving.gone = true
		c.settled(t, members...)
		play.serves(t)
	}
	play.end()
	judge(t, c, play, &tally{})
}

// joins adds a member. An order whose answer is lost may have been obeyed.
func (c *cluster) joins(t *testing.T, members []*member, joining *member) {
	t.Helper()
	primary := c.settled(t, members...)
	require.True(t, eventually(patience, func() bool {
		err := primary.change("add", "name", joining.name)
		if err == nil {
			return true
		}
		t.Logf("add %d: %v", joining.index, err)
		roles, _ := primary.roles()
		_, is := roles[joining.name]
		return is
	}), "member %d is not added", joining.index)
}

// other returns a member that is not m.
func other(members []*member, m *member) *member {
	for _, o := range members {
		if o != m {
			return o
		}
	}
	return nil
}
