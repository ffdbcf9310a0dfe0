package cluster

import (
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPausedPrimary: a primary that is paused, and goes on when there is another, answers nothing to
// those who ask it meanwhile: what it would say is old.
func TestPausedPrimary(t *testing.T) {
	together(t)
	c := newCluster(t, 3, false)
	for round := range rounds(t, 1) {
		former := c.settled(t, c.members...)
		old, fresh := "old-"+strconv.Itoa(round), "new-"+strconv.Itoa(round)
		var wires []wire
		for i := range 8 * len(protocols) {
			w, err := protocols[i%len(protocols)].dial(former, waitLimit)
			require.NoError(t, err)
			require.Equal(t, done, w.ask(call{verb: set, key: "k", value: old}).certainty)
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
				defer w.close()
				time.AfterFunc(100*time.Millisecond, asked.Done) // the request is with the system by then
				if r := w.ask(call{verb: get, key: "k"}); r.certainty == done && r.value != fresh {
					t.Errorf("%s: a server that was paused has answered %q when %q was acknowledged by another", former.name, r.value, fresh)
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
	w, err := dialHTTP(m, askLimit, false)
	if err != nil {
		return false
	}
	defer w.close()
	return w.ask(call{verb: set, key: key, value: value}).certainty == done
}
