package db

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/record"
	"gotycoon/ulog"
)

// BenchmarkVersions measures what it costs to keep versions: sets of a client, and batches of a
// master.
func BenchmarkVersions(b *testing.B) {
	for _, name := range []string{"without", "lww"} { // no # in them: they become directories, and # would end a path
		expr := map[string]string{"without": "a.kct", "lww": "a.kct#lww=true"}[name]
		open := func(b *testing.B) *DB {
			dir := b.TempDir()
			d := mustOpen(b, Options{LogDir: filepath.Join(dir, "ulog"), SID: 1}, filepath.Join(dir, expr)).DB(0)
			return d
		}
		key := func(i int) []byte { return fmt.Appendf(nil, "%012d", uint64(i)*7919%1_000_000) }
		b.Run("set/"+name, func(b *testing.B) {
			d, i := open(b), 0
			value := make([]byte, 32)
			for b.Loop() {
				var p Pending
				require.NoError(b, d.Set(&p, key(i), value, record.Never))
				if i++; i%100 == 0 {
					require.NoError(b, p.Wait())
				}
			}
		})
		b.Run("follow/"+name, func(b *testing.B) {
			d, i := open(b), 0
			value := stored("0123456789012345678901234567890")
			for b.Loop() {
				ups := make([]ulog.Update, 250)
				for j := range ups {
					i++
					ups[j] = ulog.Update{SID: 9, Op: ulog.OpSet, Key: key(i), Value: value, Origin: ulog.Origin{Log: 5, Stamp: ulog.Stamp(i)}}
				}
				require.NoError(b, d.Replicate(nil, ups, func(int) *ulog.Position { return &ulog.Position{State: value} }, nil))
			}
			b.ReportMetric(float64(b.N*250)/b.Elapsed().Seconds(), "updates/s")
		})
	}
}
