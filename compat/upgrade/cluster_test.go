package upgrade

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// cluster is three members.
type cluster struct {
	t       *testing.T
	members []*node
	options []string
}

func newCluster(t *testing.T, dir string, members ...*node) *cluster {
	t.Helper()
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("secret", 8)), 0o600))
	var list []string
	for _, m := range members {
		list = append(list, m.addr())
	}
	return &cluster{t: t, members: members, options: []string{
		"-cluster", "upgrade", "-cluster-secret", secret, "-members", strings.Join(list, ","), "-forward"}}
}

// roles are the roles of the members by their addresses, as one of them says.
func (c *cluster) roles(ask *node) map[string]string {
	rows, err := ask.c.ClusterStatus(c.t.Context())
	if err != nil {
		return nil
	}
	roles := map[string]string{}
	for name, text := range rows {
		role, rest, _ := strings.Cut(strings.TrimPrefix(string(text), "role="), " ")
		if strings.Contains(rest, "incomplete=") {
			role = "incomplete"
		}
		roles[name] = role
	}
	return roles
}

// whole waits until one member leads and all others follow, and returns it.
func (c *cluster) whole() (primary *node) {
	c.t.Helper()
	eventually(c.t, func() bool {
		primary = nil
		following := 0
		roles := c.roles(c.members[0])
		for _, m := range c.members {
			switch roles[m.addr()] {
			case "leading":
				primary = m
			case "following":
				following++
			}
		}
		return primary != nil && following == len(c.members)-1
	}, "the cluster is not whole")
	return primary
}

var leads = regexp.MustCompile(`cluster: this member is (?:opening|leading) \(term (\d+)\)`)

// first returns who was the primary first. On a busy machine another one may have become it since.
func (c *cluster) first() (primary *node) {
	c.t.Helper()
	least := math.MaxInt
	for _, m := range c.members {
		for _, found := range leads.FindAllStringSubmatch(m.proc.Output(), -1) {
			term, err := strconv.Atoi(found[1])
			require.NoError(c.t, err)
			if term < least {
				primary, least = m, term
			}
		}
	}
	return primary
}

// upgrade goes over to another program as docs/cluster.md says: the followers one after the other,
// then another primary, and then the former one.
func (c *cluster) upgrade(program, to string, l *load) {
	c.t.Helper()
	former := c.whole()
	replace := func(m *node) {
		m.stop()
		m.start(program, c.options...)
		c.whole()
	}
	var next *node
	for _, m := range c.members {
		if m != former {
			replace(m)
			next = m
		}
	}
	c.t.Logf("the followers %s: no answer for %v at most", to, l.longest())
	c.switchOver(former, next)
	c.t.Logf("the switchover %s: no answer for %v at most", to, l.longest())
	replace(former)
	c.t.Logf("the former primary %s: no answer for %v at most", to, l.longest())
}

// switchOver makes another member the primary. The order is given again while another one leads: the
// programs of an earlier version may need to be told twice when the member has just started, and on a
// busy machine an election may come between.
func (c *cluster) switchOver(from, to *node) {
	c.t.Helper()
	order := client.ClusterChange{Do: "switchover", Name: to.addr()}
	const orders = 3
	primary := from
	for n := 1; primary != to; n++ {
		require.LessOrEqual(c.t, n, orders, "%s does not become the primary", to.addr())
		err := primary.c.ChangeCluster(c.t.Context(), order)
		if err != nil || n > 1 {
			c.t.Logf("switchover, order %d: %v", n, err)
		}
		if primary = c.whole(); primary != to {
			time.Sleep(2 * time.Second) //lint:sleep nothing tells when an election is over
		}
	}
}

func clusterAndBack(t *testing.T, v versions) {
	if !knows(t, v.old, "-cluster-secret") || !knows(t, v.old, "-members") {
		t.Skip("the old version knows no clusters")
	}
	dir := t.TempDir()
	c := newCluster(t, dir, newNode(t, dir, 1), newNode(t, dir, 2), newNode(t, dir, 3))
	for _, m := range c.members {
		m.start(v.old, c.options...)
	}
	c.whole()
	l := startLoad(t, c.members...)
	c.upgrade(v.present, "to the new version", l)
	c.upgrade(v.old, "back to the old version", l)
	l.check()
}

// becomeCluster: the slaves wait as members until the master has become one too, and it serves until
// then.
func becomeCluster(t *testing.T, v versions) {
	dir := t.TempDir()
	master, slaves := newNode(t, dir, 1), []*node{newNode(t, dir, 2), newNode(t, dir, 3)}
	master.start(v.old)
	for _, s := range slaves {
		s.start(v.old, follows(master, s)...)
	}
	l := startLoad(t, master)
	for _, s := range slaves {
		s.caughtUp(master)
	}
	c := newCluster(t, dir, append([]*node{master}, slaves...)...)
	for _, s := range slaves {
		s.stop()
		s.start(v.present, c.options...)
	}
	t.Logf("the slaves: no answer for %v at most", l.longest())
	eventually(t, func() bool {
		rows, _ := slaves[0].c.ClusterStatus(t.Context())
		return strings.Contains(fmt.Sprintf("%s", rows), "2 of 3 members with data are here")
	}, "the slaves do not wait for the master alone")
	master.stop()
	master.start(v.present, c.options...)
	l.goesOn()
	t.Logf("the master: no answer for %v at most", l.longest())
	c.whole()
	require.Equal(t, master, c.first(), "the former master")
	l.nodes = c.members
	l.check()
}
