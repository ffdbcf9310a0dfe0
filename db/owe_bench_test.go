package db

import (
	"fmt"
	"gotycoon/db/record"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkLogged measures operations of a memory database with an update log: what a read pays to
// know that what it has read is safe, and what an update pays to tell. With a writer, reads meet
// updates that are under way.
func BenchmarkLogged(b *testing.B) {
	c := mustOpen(b, Options{LogDir: b.TempDir()}, "%")
	d := c.DB(0)
	keys := make([][]byte, 1<<14)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key-%012d", i)
		require.NoError(b, d.Set(nil, keys[i], make([]byte, 100), record.Never))
	}
	value := make([]byte, 100)
	failed := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	set := func(owed *Pending, i int) { failed(d.Set(owed, keys[i%len(keys)], value, record.Never)) }
	room := make([]byte, 0, 200)
	get := func(owed *Pending, i int) {
		_, _, err := d.Get(owed, room, keys[i%len(keys)])
		failed(err)
	}
	for _, bm := range []struct {
		name string
		op   func(owed *Pending, i int)
	}{
		{"set", set},
		{"get", get},
		{"set and 15 gets", func(owed *Pending, i int) {
			if i%16 == 0 {
				set(owed, i)
			} else {
				get(owed, i)
			}
		}},
		{"get_bulk of 100", func(owed *Pending, _ int) {
			failed(d.GetBulk(owed, keys[:100], false, func(int, []byte, int64) {}))
		}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			var owed Pending
			spent := processorTime(b)
			for i := range b.N {
				bm.op(&owed, i)
				if i%64 == 63 { // as a connection with pipelined requests does
					failed(owed.Wait())
				}
			}
			failed(owed.Wait())
			b.ReportMetric(float64(processorTime(b)-spent)/float64(b.N), "core-ns/op")
		})
	}
}

// processorTime stands still while others use the machine.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
