package db

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
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
