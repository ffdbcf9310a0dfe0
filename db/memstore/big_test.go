//go:build !race

// The race detector takes more memory than what is measured here.

package memstore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// valueSizes are those of tiny, middling and large records, with the expiration time in front.
var valueSizes = []int{8 + 5, 100 + 5, 1000 + 5}

// bound is what n records of 16-byte keys may cost in memory: 1.3 × their bytes and 40 bytes each.
func bound(n, valueSize int) int64 {
	return int64(n) * int64(13*(16+valueSize)+400) / 10
}

func TestMemoryBound(t *testing.T) {
	if testing.Short() {
		t.Skip("fills stores with half a million records")
	}
	for name, open := range benchKinds() {
		for _, size := range append([]int{50, 235, 400}, valueSizes...) {
			t.Run(fmt.Sprintf("%s %d", name, size), func(t *testing.T) {
				const n = 500_000
				s := open()
				fill(s, 0, n, make([]byte, size))
				mapped := s.(interface{ Mapped() int64 }).Mapped()
				require.Less(t, mapped, bound(n, size), "%d a record", mapped/n)
				t.Logf("%d bytes a record, bound %d", mapped/n, bound(n, size)/n)
				require.LessOrEqual(t, s.Size(), mapped)
				fill(s, 0, n, make([]byte, size)) // overwriting must not cost more
				mapped = s.(interface{ Mapped() int64 }).Mapped()
				require.Less(t, mapped, bound(n, size), "%d a record", mapped/n)
				require.NoError(t, s.Close())
			})
		}
	}
}

// TestTenMillion measures what ten million records cost. It takes minutes and up to 12 GB of
// memory. GOTYCOON_BIG is 1 or the name of one kind.
func TestTenMillion(t *testing.T) {
	which := os.Getenv("GOTYCOON_BIG")
	if which == "" {
		t.Skip("GOTYCOON_BIG is not set")
	}
	for name, open := range benchKinds() {
		for _, size := range valueSizes {
			if which != "1" && which != name {
				continue
			}
			t.Run(fmt.Sprintf("%s %d", name, size), func(t *testing.T) { measureBig(t, open(), size) })
		}
	}
}

func measureBig(t *testing.T, s store.Store, size int) {
	const n = 10_000_000
	before := residentSize(t)
	done := make(chan time.Duration)
	go func() {
		start := time.Now()
		fill(s, 0, n, make([]byte, size))
		done <- time.Since(start)
	}()
	during := timeGets(s, n, done)
	cost := residentSize(t) - before
	t.Logf("%d bytes a record (bound %d); size %d", cost/n, bound(n, size)/n, s.Size()/n)
	t.Logf("while growing: insert %v, get %v", during.writing/n, during.latencies)
	after := timeGets(s, n, nil)
	t.Logf("full: get %v", after.latencies)
	t.Logf("collector: %v", pauses())
	require.Less(t, cost, bound(n, size))
	start := time.Now()
	require.NoError(t, s.Close())
	t.Logf("closing takes %v", time.Since(start))
	require.Less(t, residentSize(t)-before, int64(100<<20))
}

// timing is what timeGets measures.
type timing struct {
	writing   time.Duration // by the writer beside
	latencies string
}

// timeGets times gets of random keys, and forces a collection now and then, until done tells how
// long the writer took; or for a while if there is none.
func timeGets(s store.Store, n uint64, done <-chan time.Duration) timing {
	var all []time.Duration
	var value []byte
	key := make([]byte, 16)
	for i := 0; done != nil || i < 2_000_000; i++ {
		benchKey(key, rand.Uint64N(n))
		start := time.Now()
		value, _, _ = s.Get(value[:0], key, nil)
		if len(all) < 20_000_000 {
			all = append(all, time.Since(start))
		}
		if i%500_000 == 0 {
			go runtime.GC()
		}
		select {
		case took := <-done:
			return timing{took, summary(all)}
		default:
		}
	}
	return timing{0, summary(all)}
}

func summary(all []time.Duration) string {
	slices.Sort(all)
	at := func(q float64) time.Duration { return all[int(float64(len(all)-1)*q)] }
	return fmt.Sprintf("median %v 99%% %v 99.9%% %v 99.99%% %v max %v", at(.5), at(.99), at(.999), at(.9999), at(1))
}

func pauses() string {
	var st debug.GCStats
	st.PauseQuantiles = make([]time.Duration, 5)
	debug.ReadGCStats(&st)
	return fmt.Sprintf("%d collections, median pause %v, longest %v", st.NumGC, st.PauseQuantiles[2], st.PauseQuantiles[4])
}

// residentSize returns the memory that the process takes.
func residentSize(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc")
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	var kib int64
	_, err = fmt.Sscan(rest, &kib)
	require.NoError(t, err)
	return kib << 10
}

// A collection must not look at records: its work does not depend on their number.
func TestCollectorSeesNoRecords(t *testing.T) {
	h := NewHash(HashOptions{})
	defer h.Close() // always nil
	objects := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapObjects
	}
	before := objects()
	for i := range 50_000 {
		h.Apply(0, []update.Update{set(fmt.Sprint(i), "value")})
	}
	require.Less(t, objects(), before+1000)
}
