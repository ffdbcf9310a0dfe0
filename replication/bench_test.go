package replication_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/replication"
)

// BenchmarkCatchUp is a follower with an update log that fetches what is in its master's.
func BenchmarkCatchUp(b *testing.B) {
	for _, row := range []struct{ name, expr string }{{"memory", ":"}, {"file", "a.kct"}} {
		b.Run(row.name, func(b *testing.B) {
			a := newNode(b, 1, ":", ":")
			recs := make([]db.Record, 0, 1000)
			for i := range b.N {
				recs = append(recs, db.Record{Key: fmt.Appendf(nil, "%08d", i), Value: []byte("0123456789abcdef"), XT: db.Never})
				if len(recs) == cap(recs) || i == b.N-1 {
					_, err := a.catalog.DB(0).SetBulk(nil, recs, false)
					require.NoError(b, err)
					recs = recs[:0]
				}
			}
			expr := row.expr
			if expr != ":" {
				expr = filepath.Join(b.TempDir(), expr)
			}
			n := newNode(b, 2, expr, ":")
			a.set(1, "end", "x")
			b.ResetTimer()
			_, end := n.follow(replication.Master{Host: "127.0.0.1", Port: a.port})
			eventually(b, "the last update", func() bool { return n.get(1, "end") != "" })
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
			end()
		})
	}
}

// BenchmarkDelay is the time from an acknowledged update on the master to its being visible on the follower.
func BenchmarkDelay(b *testing.B) {
	a, n := newNode(b, 1), newNode(b, 2)
	n.follow(replication.Master{Host: "127.0.0.1", Port: a.port})
	a.set(0, "k", "start")
	eventually(b, "the stream", func() bool { return n.get(0, "k") == "start" })
	for i := 0; b.Loop(); i++ {
		value := fmt.Sprint(i)
		a.set(0, "k", value)
		for n.get(0, "k") != value {
			runtime.Gosched()
		}
	}
}
