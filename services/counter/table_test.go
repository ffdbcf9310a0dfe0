package counter

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/counter/frame"
)

func TestNothingIsAllocatedForACounterThatIsThere(t *testing.T) {
	table, h, name := newTable(DefaultBuckets, 1<<20), holding{}, []byte("name")
	require.Equal(t, frame.OK, table.acquire(&h, name, 1, 1))
	require.Equal(t, frame.OK, table.release(&h, name, 1))
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		table.acquire(&h, name, 1, 1)
		_, _ = table.get(name)
		table.release(&h, name, 1)
	}))
}

// BenchmarkTable acquires and releases, without sockets.
func BenchmarkTable(b *testing.B) {
	table := newTable(DefaultBuckets, 1<<30)
	var workers atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		h, name := holding{}, fmt.Appendf(nil, "resource-%d", workers.Add(1))
		for pb.Next() {
			table.acquire(&h, name, 1, 10)
			table.release(&h, name, 1)
		}
	})
}
