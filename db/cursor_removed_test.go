package db

import (
	"gotycoon/db/record"
	"testing"

	"github.com/stretchr/testify/require"
)

// A cursor whose record was removed steps back to the one before, also from the end of the
// database, as in the original.
func TestStepBackFromARemovedRecord(t *testing.T) {
	for _, expr := range []string{"%", t.TempDir() + "/a.kct"} {
		d := mustOpen(t, Options{}, expr).DB(0)
		for _, key := range []string{"a", "b", "c"} {
			require.NoError(t, d.Set(nil, []byte(key), []byte("v"), record.Never))
		}
		c := d.NewCursor()
		require.NoError(t, c.JumpKey(nil, []byte("c")))
		require.NoError(t, d.Remove(nil, []byte("c")))
		require.NoError(t, c.StepBack(nil))
		key, _, _, err := c.Get(nil, false)
		require.NoError(t, err)
		require.Equal(t, "b", string(key))
	}
}
