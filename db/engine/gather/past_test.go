package gather_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
)

// past is an engine that is taken back to the past when a server makes a call.
type past struct {
	server string
	before mem.Name
	back   func() // nil: it has happened, or shall not happen
	calls  int    // of this name that the server makes before that
}

func (p *past) fault(c mem.Call) (f mem.Fault) {
	if c.Server != p.server || c.Name != p.before || p.back == nil {
		return f
	}
	if p.calls--; p.calls < 0 {
		back := p.back
		p.back = nil
		back()
	}
	return f
}

// adds adds to a number at a server until the group has a number in its lane.
func adds(w *world, server int, name string, by int, seq uint64) (sum int) {
	for at := uint64(0); at < seq; {
		o, err := do(context.Background(), w.gathers[server], operation{Keys: []engine.Key{key(name)}, Body: func(v *gather.View) error {
			sum = addTo(v, key(name), by)
			return nil
		}})
		require.NoError(w, err)
		at = o.Revision & engine.LastSeq
	}
	return sum
}

// What a server knows is not mistaken for what another one has stored with the same revision, after
// the engine was taken back to before it gave the first server its lane.
func TestWhatIsKnownOfALostPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		w := newWorld(t, 2, mem.Options{}, gather.Options{Lanes: 1, Past: func() { told++ }})
		defer w.close()
		back := w.store.Keep()
		adds(w, 0, "k", 1, 10)
		require.Zero(t, told)
		back()
		for _, e := range w.engines {
			e.Reconnect()
		}
		sum := adds(w, 1, "k", 100, 10)
		got, err := add(w.gathers[0], "k", 1)
		require.NoError(t, err)
		require.Equal(t, sum+1, got)
		require.Equal(t, strconv.Itoa(got), w.value("k"))
		require.Equal(t, 1, told)
	})
}

// What a server has read before the engine was taken back to the past is not mistaken for what
// another one has stored afterwards, in the lane of a third one.
func TestWhatWasReadInALostPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &past{server: "2", before: mem.Write}
		w := newWorld(t, 3, mem.Options{Faults: p.fault}, gather.Options{Lanes: 1})
		defer w.close()
		_, err := add(w.gathers[2], "other", 1)
		require.NoError(t, err)
		back := w.store.Keep()
		adds(w, 0, "k", 1, 10)
		sum := 0
		p.back = func() { // the server has read "k" by now
			back()
			for _, e := range w.engines {
				e.Reconnect()
			}
			sum = adds(w, 1, "k", 100, 10)
		}
		got, err := add(w.gathers[2], "k", 1)
		require.NoError(t, err)
		require.NotZero(t, sum)
		require.Equal(t, sum+1, got)
		require.Equal(t, strconv.Itoa(got), w.value("k"))
	})
}

// A group without an answer that was lost with the past is made again, though another server has
// made one of the same number.
func TestAGroupOfALostPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, lost := &past{server: "0", before: mem.Settle}, false
		w := newWorld(t, 2, mem.Options{Faults: func(c mem.Call) mem.Fault {
			f := p.fault(c)
			if c.Server == "0" && c.Name == mem.Write && c.Seq == 10 && !lost {
				lost = true
				f = mem.Fault{Kind: engine.Unknown, Made: true}
			}
			return f
		}}, gather.Options{Lanes: 1})
		defer w.close()
		back := w.store.Keep()
		adds(w, 0, "k", 1, 9)
		p.back = func() {
			back()
			for _, e := range w.engines {
				e.Reconnect()
			}
			adds(w, 1, "k", 100, 10)
		}
		got, err := add(w.gathers[0], "k", 1)
		require.NoError(t, err)
		require.Equal(t, 1001, got)
		require.Equal(t, "1001", w.value("k"))
	})
}
