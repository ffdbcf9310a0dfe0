package db

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/ulog"
)

// What is remembered is what belongs to the data: after a kill, after a clean close, and when a file goes over to another log.
func TestWhatIsRememberedStaysWithTheData(t *testing.T) {
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			dir := t.TempDir()
			open := func(dir string, shared bool) (*Catalog, *DB) {
				o := Options{CheckpointSize: 16 << 10}
				if shared {
					o = in(dir)
				}
				c := mustOpen(t, o, filepath.Join(dir, "a.kct"))
				return c, c.DB(0)
			}
			c, d := open(dir, shared)
			require.Nil(t, d.Remembered())
			for i := range 300 {
				ups := []ulog.Update{setFrom(9, fmt.Sprint(i, " a"), stored("v")), {SID: 9, Op: ulog.OpClear}, setFrom(9, fmt.Sprint(i), stored("v"))}
				require.NoError(t, d.Follow(nil, ups, func(n int) *ulog.Follow { return &ulog.Follow{State: fmt.Appendf(nil, "%d.%d", i, n)} }))
				if i%60 == 7 {
					_, after := open(image(t, dir), shared)
					require.Equal(t, fmt.Sprint(i, ".3"), string(after.Remembered()))
					require.Len(t, contents(t, after), 1)
				}
			}
			require.NoError(t, c.Remember([]byte("last")))
			require.NoError(t, c.SyncLogs())
			_, after := open(image(t, dir), shared)
			require.Equal(t, "last", string(after.Remembered()))
			require.NoError(t, c.Close())
			c, d = open(dir, shared)
			require.Equal(t, "last", string(d.Remembered()))
			require.NoError(t, c.Close())
			c, d = open(dir, !shared)
			require.Equal(t, "last", string(d.Remembered()))
			require.NoError(t, c.Close())
		})
	}
}
