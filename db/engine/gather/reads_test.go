package gather_test

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
)

// A read goes at once while a reader is idle; what waits goes together.
func TestReadsGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := gate{name: mem.Read}
		w := one(t, &gate, mem.Options{}, gather.Options{Readers: 2})
		defer w.close()
		for i := range 20 {
			_, err := do(context.Background(), w.gathers[0], set(fmt.Sprintf("%02d", i), strconv.Itoa(i)))
			require.NoError(t, err)
		}
		done := make(chan error, 100)
		ask := func(names ...string) {
			go func() {
				var keys []engine.Key
				for _, n := range names {
					keys = append(keys, key(n))
				}
				recs, err := w.gathers[0].Read(context.Background(), keys)
				for _, r := range recs {
					if n, _ := strconv.Atoi(string(r.Key.Key)); err == nil && strconv.Itoa(n) != string(r.Value) {
						err = fmt.Errorf("the record of %s is %s", r.Key.Key, r.Value)
					}
				}
				if err == nil && len(recs) != len(names)-strings.Count(strings.Join(names, " "), "x") {
					err = fmt.Errorf("%d records for %v", len(recs), names)
				}
				done <- err
			}()
			synctest.Wait()
		}
		began := time.Now()
		ask("00")
		ask("01")
		for i := range 20 {
			ask(fmt.Sprintf("%02d", i))
		}
		ask("07", "x", "03")
		ask("x")
		for range 24 {
			require.NoError(t, <-done)
		}
		require.EqualValues(t, 3, gate.calls.Load())
		require.Equal(t, 20*time.Millisecond, time.Since(began))
	})
}

// Callers behind a network come one after the other: when a request has been answered, hardly any of
// many callers is there yet. It is worth a moment to wait for some of them; where there are few
// callers, nobody waits. Callers who do not come any more are forgotten.
func TestReadsOfCallersBehindANetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes, network = 100 * time.Microsecond, 8 * time.Microsecond
		gate := gate{name: mem.Read, delay: takes}
		w := newWorld(t, 1, mem.Options{Faults: gate.fault}, gather.Options{})
		defer w.close()
		load := func(callers, each int) (perRequest float64, longest time.Duration) {
			before := gate.calls.Load()
			one := make(chan time.Duration, 1) // the network, which has one caller at a time
			one <- 0
			var work sync.WaitGroup
			for range callers {
				work.Go(func() {
					for range each {
						longest := <-one
						time.Sleep(network) //lint:sleep on a clock of the test
						one <- longest
						began := time.Now()
						_, err := w.gathers[0].Read(context.Background(), []engine.Key{key("k")})
						took := time.Since(began)
						require.NoError(t, err)
						one <- max(<-one, took)
					}
				})
			}
			work.Wait()
			return float64(callers*each) / float64(gate.calls.Load()-before), <-one
		}
		keys, longest := load(64, 100)
		require.Greater(t, keys, 10.0)
		require.LessOrEqual(t, longest, 2*takes)
		load(1, 100)
		_, longest = load(4, 100)
		require.Equal(t, takes, longest, "nobody has waited")
	})
}

// Large records do not come by hundreds in one request.
func TestReadsOfLargeRecordsComeInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := gate{name: mem.Read}
		w := one(t, &gate, mem.Options{}, gather.Options{Readers: 1, GroupBytes: 100 << 10})
		defer w.close()
		_, err := do(context.Background(), w.gathers[0], set("k", string(bytes.Repeat([]byte("v"), 50<<10))))
		require.NoError(t, err)
		for range 20 { // it learns how large records are
			_, err := w.gathers[0].Read(context.Background(), []engine.Key{key("k")})
			require.NoError(t, err)
		}
		before, done := gate.calls.Load(), make(chan error, 9)
		for range 9 {
			go func() {
				_, err := w.gathers[0].Read(context.Background(), []engine.Key{key("k")})
				done <- err
			}()
			synctest.Wait()
		}
		for range 9 {
			require.NoError(t, <-done)
		}
		require.EqualValues(t, 1+4, gate.calls.Load()-before, "two records make a request full")
	})
}

// A read of no keys is answered, needs no engine, and leaves nothing behind that others wait for.
func TestReadsOfNoKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 300 * time.Microsecond
		gate := gate{name: mem.Read, delay: takes}
		w := newWorld(t, 1, mem.Options{Faults: gate.fault}, gather.Options{})
		defer w.close()
		for range 100 {
			recs, err := w.gathers[0].Read(context.Background(), nil)
			require.NoError(t, err)
			require.Empty(t, recs)
		}
		require.Zero(t, gate.calls.Load())
		for range 100 {
			began := time.Now()
			_, err := w.gathers[0].Read(context.Background(), []engine.Key{key("k")})
			require.NoError(t, err)
			require.Equal(t, takes, time.Since(began), "a lone read waits for nobody")
		}
	})
}

// A read that comes behind one which goes alone, and takes long, goes with another reader.
func TestReadsBehindALongOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes, long = 300 * time.Microsecond, 2 * time.Second
		var next atomic.Int64 // what the next request takes
		next.Store(int64(takes))
		w := newWorld(t, 1, mem.Options{Faults: func(c mem.Call) (f mem.Fault) {
			if c.Name == mem.Read {
				f.Delay = time.Duration(next.Swap(int64(takes)))
			}
			return f
		}}, gather.Options{})
		defer w.close()
		var work sync.WaitGroup
		read := func(most int, longest time.Duration) {
			work.Go(func() {
				began := time.Now()
				_, err := w.gathers[0].ReadLarge(context.Background(), []engine.Key{key("k")}, most)
				require.NoError(t, err)
				require.LessOrEqual(t, time.Since(began), longest)
			})
		}
		for range 100 { // so many that one read waits for others
			read(0, 2*takes+time.Millisecond)
		}
		work.Wait()
		next.Store(int64(long))
		read(1<<28, long+time.Millisecond)
		time.Sleep(takes / 6) //lint:sleep on a clock of the test
		read(0, takes+2*time.Millisecond)
		work.Wait()
	})
}

// When a burst of reads is over, lone reads soon wait for nobody.
func TestReadsBehindABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 300 * time.Microsecond
		gate := gate{name: mem.Read, delay: takes}
		w := newWorld(t, 1, mem.Options{Faults: gate.fault}, gather.Options{})
		defer w.close()
		read := func() (took time.Duration) {
			began := time.Now()
			_, err := w.gathers[0].Read(context.Background(), []engine.Key{key("k")})
			require.NoError(t, err)
			return time.Since(began)
		}
		var work sync.WaitGroup
		for range 5000 {
			work.Go(func() { read() })
		}
		work.Wait()
		waited := 0
		for read() > takes {
			waited++
		}
		require.LessOrEqual(t, waited, 50)
	})
}
