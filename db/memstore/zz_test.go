package memstore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func cpu() time.Duration {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano())
}

func TestZZ(t *testing.T) {
	for _, name := range []string{"hash", "tree"} {
		open := benchKinds()[name]
		best := time.Hour
		s := open()
		for range 5 {
			_ = s.Close()
			c := cpu()
			fill(s, 0, benchRecords, make([]byte, 105))
			best = min(best, cpu()-c)
		}
		bestGet := time.Hour
		r := rand.New(rand.NewPCG(1, 2))
		key := make([]byte, 16)
		var v []byte
		for range 30 {
			c := cpu()
			for range 100000 {
				benchKey(key, r.Uint64N(benchRecords))
				v, _, _ = s.Get(v[:0], key)
			}
			bestGet = min(bestGet, cpu()-c)
		}
		fmt.Printf("%s insert %d get %d  ", name, best.Nanoseconds()/benchRecords, bestGet.Nanoseconds()/100000)
	}
	fmt.Println()
}
