package cluster

import (
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/history"
)

// TestPausedPrimary: a primary that is paused, and goes on when there is another, answers nothing to
// those who ask it meanwhile: what it would say is old.
func TestPausedPrimary(t *testing.T) {
	together(t)
	c := newCluster(t, 3, false)
	for round := range rounds(t, 1) {
		former := c.settled(t, c.members...)
		old, fresh := "old-"+strconv.Itoa(round), "new-"+strconv.Itoa(round)
		var wires []history.Wire
		for i := range 8 * len(history.Protocols) {
			w, err := history.Protocols[i%len(history.Protocols)].Dial(former.reach(), waitLimit)
			require.NoError(t, err)
			require.Equal(t, history.Done, w.Ask(history.Call{Verb: history.Set, Key: "k", Value: old}).Certainty)
			wires = append(wires, w)
		}
		former.signal(syscall.SIGSTOP)
		require.True(t, eventually(patience, func() bool {
			for _, m := range c.members {
				if m != former && m.set("k", fresh) {
					return true
				}
			}
			return false
		}), "no other primary")

		var asked, answered sync.WaitGroup
		for _, w := range wires {
			asked.Add(1)
			answered.Go(func() {
				defer w.Close()
				time.AfterFunc(100*time.Millisecond, asked.Done) // the request is with the system by then
				if r := w.Ask(history.Call{Verb: history.Get, Key: "k"}); r.Certainty == history.Done && r.Value != fresh {
					t.Errorf("%s: a server that was paused has answered %q when %q was acknowledged by another", former.name, r.Value, fresh)
				}
			})
		}
		asked.Wait()
		former.signal(syscall.SIGCONT)
		answered.Wait()
	}
}

// set reports whether a member has carried out an update.
func (m *member) set(key, value string) bool {
	w, err := history.DialHTTP(m.port, askLimit)
	if err != nil {
		return false
	}
	defer w.Close()
	return w.Ask(history.Call{Verb: history.Set, Key: key, Value: value}).Certainty == history.Done
}
