package memstore

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"gotycoon/db/memstore/slab"
	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

const benchRecords = 1 << 20

// benchKey makes the 16-byte key of a number. Keys of neighbours have nothing in common.
func benchKey(key []byte, i uint64) {
	binary.BigEndian.PutUint64(key, i*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(key[8:], i)
}

func benchKinds() map[string]func() store.Store {
	return map[string]func() store.Store{
		"hash":  func() store.Store { return NewHash(HashOptions{}) },
		"cache": func() store.Store { return NewCache(CacheOptions{}) },
		"tree":  func() store.Store { return NewTreeStore() },
	}
}

// fill sets the records from ≤ i < to.
func fill(s store.Store, from, to uint64, value []byte) {
	key := make([]byte, 16)
	ups := []update.Update{{Op: update.OpSet, Key: key, Value: value}}
	for i := from; i < to; i++ {
		benchKey(key, i)
		s.Apply(0, ups)
	}
}

func BenchmarkInsert(b *testing.B) {
	for name, open := range benchKinds() {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				s := open()
				fill(s, 0, benchRecords, make([]byte, 105))
				_ = s.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRecords, "ns/record")
		})
	}
}

func BenchmarkOverwrite(b *testing.B) {
	for name, open := range benchKinds() {
		b.Run(name, func(b *testing.B) {
			s := open()
			defer s.Close() // always nil
			fill(s, 0, benchRecords, make([]byte, 105))
			key := make([]byte, 16)
			ups := []update.Update{{Op: update.OpSet, Key: key, Value: make([]byte, 105)}}
			b.ResetTimer()
			for range b.N {
				benchKey(key, rand.Uint64N(benchRecords))
				s.Apply(0, ups)
			}
		})
	}
}

// cpuTime begins to measure the processor time of a benchmark, which other programs disturb less
// than they do the time on the clock. The caller calls end to report it.
func cpuTime(b *testing.B) (end func()) {
	used := func() int64 {
		var r unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
			b.Fatal(err)
		}
		return r.Utime.Nano() + r.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

// bulkSize is the number of records of a bulk in the benchmarks.
const bulkSize = 100

// textKey makes a key as BenchmarkBulk's clients have it: 16 hexadecimal digits.
func textKey(key []byte, i uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], i*0x9e3779b97f4a7c15)
	hex.Encode(key, b[:])
}

// BenchmarkBulk measures bulks of random keys, per record.
func BenchmarkBulk(b *testing.B) {
	for name, open := range benchKinds() {
		s := open()
		ups, keys := make([]update.Update, bulkSize), make([][]byte, bulkSize)
		value := make([]byte, 105)
		for i := range ups {
			keys[i] = make([]byte, 16)
			ups[i] = update.Update{Op: update.OpSet, Key: keys[i], Value: value}
		}
		choose := func(next func() uint64) {
			for _, key := range keys {
				textKey(key, next())
			}
		}
		n := uint64(0)
		for n < benchRecords {
			choose(func() uint64 { n++; return n - 1 })
			s.Apply(0, ups)
		}
		someKey := func() uint64 { return rand.Uint64N(benchRecords) }
		b.Run(name+"/set", func(b *testing.B) {
			defer cpuTime(b)()
			for i := 0; i < b.N; i += bulkSize {
				choose(someKey)
				s.Apply(0, ups)
			}
		})
		b.Run(name+"/get", func(b *testing.B) {
			defer cpuTime(b)()
			var got []byte
			for i := 0; i < b.N; i += bulkSize {
				choose(someKey)
				s.(store.Warmer).Warm(keys)
				for _, key := range keys {
					got, _, _ = s.Get(got[:0], key, nil)
				}
			}
		})
		_ = s.Close()
	}
}

func benchGets(b *testing.B, s store.Store, more func() bool) {
	key := make([]byte, 16)
	var value []byte
	r := rand.New(rand.NewPCG(1, rand.Uint64()))
	for more() {
		benchKey(key, r.Uint64N(benchRecords))
		var found bool
		if value, found, _ = s.Get(value[:0], key, nil); !found {
			b.Error("lost")
			return
		}
	}
}

func BenchmarkGet(b *testing.B) {
	for name, open := range benchKinds() {
		s := open()
		fill(s, 0, benchRecords, make([]byte, 105))
		b.Run(name+"/one", func(b *testing.B) { benchGets(b, s, b.Loop) })
		b.Run(name+"/many", func(b *testing.B) {
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) { benchGets(b, s, pb.Next) })
		})
		b.Run(name+"/many beside a writer", func(b *testing.B) {
			var stop atomic.Bool
			done := make(chan struct{})
			go func() {
				defer close(done)
				for !stop.Load() {
					fill(s, 0, 1000, make([]byte, 105))
				}
			}()
			b.RunParallel(func(pb *testing.PB) { benchGets(b, s, pb.Next) })
			stop.Store(true)
			<-done
		})
		_ = s.Close()
	}
}

func BenchmarkScan(b *testing.B) {
	for name, open := range benchKinds() {
		b.Run(name, func(b *testing.B) {
			s := open()
			defer s.Close() // always nil
			fill(s, 0, benchRecords, make([]byte, 105))
			b.ResetTimer()
			for n := 0; n < b.N; {
				_ = s.Scan(store.Start{Edge: true}, func(_, _ []byte) bool {
					n++
					return n < b.N
				})
			}
		})
	}
}

// BenchmarkTableGrow shows how long an insert and the readers of one table wait when the table
// grows, with as many slots as at ten million records.
func BenchmarkTableGrow(b *testing.B) {
	a := slab.New()
	defer a.Release()
	for range b.N {
		b.StopTimer()
		var t table
		t.resize(a, 10_000_000/tableCount)
		step := uint64(1<<fragBits) / uint64(t.size())
		for frag := uint64(0); !t.crowded(); frag += step {
			t.insert(t.first(frag), frag<<slab.AddrBits|1)
		}
		b.StartTimer()
		t.grow(a)
		b.StopTimer()
		t.free(a)
	}
}
