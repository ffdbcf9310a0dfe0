package db

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/engine"
	"gotycoon/db/engine/mem"
)

// The engine is taken back to before a message was taken: it is there, and nobody has claimed it. The
// lease of the server that has taken it was there before, and lasts. Who finishes the message is not
// told that it is gone.
func TestAFinishAfterThePast(t *testing.T) {
	claiming(t, 2, nil, func(t *testing.T, place *mem.Store, all []*Catalog) {
		a, b := all[0].DB(0), all[1].DB(0)
		put(t, a, "q 0", "q 1")
		zero := takeWithin(t, a, time.Second)
		back := place.Keep()
		one := takeWithin(t, a, time.Second)
		back()
		for range 2 {
			require.ErrorIs(t, one.Finish(nil), dberr.ErrNoRecord)
		}
		again := takeWithin(t, b, time.Second)
		require.Equal(t, "q 1", string(again.Value))
		require.ErrorIs(t, one.Finish(nil), dberr.ErrNoRecord)
		require.NoError(t, one.GiveBack(nil))
		noMore(t, b)
		require.NoError(t, zero.Finish(nil))
		require.NoError(t, again.Finish(nil))
		noMore(t, b)
	})
}

// A finish had no answer, and the engine was taken back to before the message was taken. Who asks
// again hears that the message is not its own, and need not ask for ever.
func TestAFinishWithoutAnAnswerBeforeThePast(t *testing.T) {
	var cut atomic.Bool
	claiming(t, 1, func(c mem.Call) (f mem.Fault) {
		if c.Name == mem.Claim && cut.Load() {
			f.Kind, f.Away = engine.Unknown, true
		}
		return f
	}, func(t *testing.T, place *mem.Store, all []*Catalog) {
		d := all[0].DB(0)
		put(t, d, "q 1")
		back := place.Keep()
		c := takeWithin(t, d, time.Second)
		cut.Store(true)
		require.ErrorIs(t, c.Finish(nil), dberr.ErrOutcome)
		back()
		cut.Store(false)
		for range 2 {
			require.ErrorIs(t, c.Finish(nil), dberr.ErrNoRecord)
		}
		require.NoError(t, takeWithin(t, d, time.Second).Finish(nil))
		noMore(t, d)
	})
}
