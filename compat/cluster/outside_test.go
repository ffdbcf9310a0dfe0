package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/history"
)

// series sets keys of its own to values that grow, and notes what was acknowledged.
type series struct {
	id   int
	n    int
	sure []string // as key=value
}

func (s *series) run(ctx context.Context, where func() *member) {
	var w *history.HTTP
	for ctx.Err() == nil {
		if w == nil {
			m := where()
			if m == nil {
				wait(ctx, 5*time.Millisecond)
				continue
			}
			var err error
			if w, err = history.DialHTTP(m.port, askLimit); err != nil {
				w = nil
				wait(ctx, 5*time.Millisecond)
				continue
			}
		}
		s.n++
		key, value := fmt.Sprintf("series-%d-%d", s.id, s.n%20), strconv.Itoa(s.n)
		if w.Ask(history.Call{Verb: history.Set, Key: key, Value: value}).Certainty == history.Done {
			s.sure = append(s.sure, key+"="+value)
			continue
		}
		w.Close()
		w = nil
		wait(ctx, 5*time.Millisecond)
	}
	if w != nil {
		w.Close()
	}
}

// TestSlavesOfTheOriginal kills the primary again and again, each time with an update that nobody
// else has. Slaves that know nothing of clusters get what was acknowledged, in order, and nothing
// else, and have the same as the members in the end: one that is turned to the next primary, and
// one that was down while it was elected.
func TestSlavesOfTheOriginal(t *testing.T) {
	together(t)
	c := newCluster(t, 3, false)
	var primary atomic.Pointer[member]
	primary.Store(c.settled(t, c.members...))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load []*series
	var writing sync.WaitGroup
	for i := range 4 {
		s := &series{id: i}
		load = append(load, s)
		writing.Go(func() { s.run(ctx, primary.Load) })
	}
	steady, absent := newSlave(t), newSlave(t)
	steady.up(primary.Load)
	for round := range rounds(t, 3) {
		absent.up(turns(c))
		require.True(t, eventually(patience, func() bool { return absent.count() > 500*(round+1) }), "the slave gets nothing")
		absent.down()
		former := primary.Load()
		alone := fmt.Sprintf("alone-%d", round)
		former.loneUpdate(t, alone)
		former.stop(true)
		primary.Store(nil)
		for _, m := range others(former) {
			m.signal(syscall.SIGCONT)
		}
		require.True(t, eventually(patience, func() bool {
			for _, m := range others(former) {
				if roles, err := m.roles(); err == nil && roles[m.name] == "leading" {
					primary.Store(m)
					return true
				}
			}
			return false
		}), "there is no other primary")
		former.restart()
		primary.Store(c.settled(t, c.members...))
	}
	stop()
	writing.Wait()
	has := sameEverywhere(t, c.data())
	absent.up(turns(c))
	for name, s := range map[string]*slave{"steady": steady, "absent": absent} {
		require.True(t, eventually(patience, func() bool { return s.lacks(has) == "" }), "the %s slave differs: %s", name, s.lacks(has))
		s.down()
		sure := 0
		for _, l := range load {
			for _, update := range l.sure {
				sure++
				require.True(t, s.seen[update], "the %s slave has not been sent %s", name, update)
			}
		}
		t.Logf("the %s slave: %d updates, %d of them acknowledged to a client", name, len(s.seen), sure)
	}
}

func (s *slave) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// turns names the members in turn: a slave that one of them refuses finds what it lacks at another.
func turns(c *cluster) func() *member {
	n := 0
	return func() *member {
		n++
		return c.members[n%len(c.members)]
	}
}

func others(m *member) []*member {
	return slices.DeleteFunc(slices.Clone(m.cluster.members), func(o *member) bool { return o == m })
}

// loneUpdate pauses the others and sends the primary an update, which is then in its log alone.
func (m *member) loneUpdate(t *testing.T, key string) {
	t.Helper()
	for _, o := range others(m) {
		o.signal(syscall.SIGSTOP)
	}
	w, err := history.DialHTTP(m.port, waitLimit)
	require.NoError(t, err)
	defer w.Close()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		w.Ask(history.Call{Verb: history.Set, Key: key, Value: "1"})
	}()
	defer func() { w.Close(); <-asked }()
	require.True(t, eventually(patience, func() bool {
		logs, _ := filepath.Glob(filepath.Join(m.dir, "ulog", "*.ulog"))
		for _, path := range logs {
			if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(key)) {
				return true
			}
		}
		return false
	}), "the update does not get into the log")
}

// TestASlaveGoesFromMemberToMember: a member that was away has stored its updates late. A slave that
// has taken some of them there lacks nothing when it goes on at another member.
func TestASlaveGoesFromMemberToMember(t *testing.T) {
	together(t)
	c := newCluster(t, 3, false)
	primary := c.settled(t, c.members...)
	late := others(primary)[0]
	late.stop(true)
	const updates = 1000
	w, err := history.DialHTTP(primary.port, askLimit)
	require.NoError(t, err)
	defer w.Close()
	for n := range updates {
		require.Equal(t, history.Done, w.Ask(history.Call{Verb: history.Set, Key: "k" + strconv.Itoa(n), Value: "1"}).Certainty)
	}
	late.restart()
	c.settled(t, c.members...)
	has := sameEverywhere(t, c.data())
	s := newSlave(t)
	s.most = updates / 2
	require.NoError(t, s.follow(late, nil))
	s.most = 0
	s.up(func() *member { return primary })
	require.True(t, eventually(patience, func() bool { return s.lacks(has) == "" }), s.lacks(has))
}
