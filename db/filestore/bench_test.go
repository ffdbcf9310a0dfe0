package filestore

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/ulog/update"
)

const benchRecords = 200_000

// benchUpdates returns a function that makes the update of a record, the same one each time, of
// which neighbours have distant keys.
func benchUpdates(valueSize int) func(i int) []update.Update {
	key, value := make([]byte, 16), make([]byte, valueSize)
	ups := []update.Update{{Op: update.OpSet, Key: key, Value: value}}
	return func(i int) []update.Update {
		binary.BigEndian.PutUint64(key, uint64(i)*0x9e3779b97f4a7c15)
		binary.BigEndian.PutUint64(key[8:], uint64(i))
		return ups
	}
}

// benchKinds calls run for files with and without versions.
func benchKinds(b *testing.B, run func(b *testing.B, s *Store)) {
	for _, kind := range []struct {
		name string
		lww  bool
	}{{"without", false}, {"lww", true}} {
		b.Run(kind.name, func(b *testing.B) {
			s, err := Open(filepath.Join(b.TempDir(), "a.kct"), Options{Limit: 1 << 40, LWW: kind.lww})
			require.NoError(b, err)
			run(b, s)
			require.NoError(b, s.Abandon())
		})
	}
}

// BenchmarkApply measures new records and records that replace others in an overlay, and the memory
// that they take.
func BenchmarkApply(b *testing.B) {
	benchKinds(b, func(b *testing.B, s *Store) {
		change := benchUpdates(40)
		for b.Loop() {
			s.view.Swap(newView(newOverlay(s.reserve, 0, s.lww))).release()
			for i := range 2 * benchRecords {
				s.Apply(update.Stamp(i+1), change(i%benchRecords))
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRecords/2, "ns/update")
		b.ReportMetric(float64(s.brake.active.Load())/benchRecords, "B/record")
	})
}

// BenchmarkApplyBulk measures a hundred updates at a time, of records that are in the overlay.
func BenchmarkApplyBulk(b *testing.B) {
	benchKinds(b, func(b *testing.B, s *Store) {
		change, ups := benchUpdates(100), make([]update.Update, 100)
		const records = 4 * benchRecords
		for i := range records {
			s.Apply(update.Stamp(i+1), change(i))
		}
		at, before := update.Stamp(records), processorTime()
		for b.Loop() {
			for i := range ups {
				at++
				u := change(int(at*0x9E3779B1) % records)[0]
				ups[i] = update.Update{Op: u.Op, Key: append(ups[i].Key[:0], u.Key...), Value: u.Value}
			}
			s.Apply(at, ups)
		}
		b.ReportMetric((processorTime()-before)/float64(b.N)/float64(len(ups)), "cpu-ns/update")
	})
}

// BenchmarkGet measures reads of records that are in the overlay.
func BenchmarkGet(b *testing.B) {
	benchKinds(b, func(b *testing.B, s *Store) {
		change := benchUpdates(40)
		for i := range benchRecords {
			s.Apply(update.Stamp(i+1), change(i))
		}
		i, room := 0, make([]byte, 0, 64)
		for b.Loop() {
			if _, found, err := s.Get(room, change(i)[0].Key, nil); !found || err != nil {
				b.Fatal(found, err)
			}
			if i++; i == benchRecords {
				i = 0
			}
		}
	})
}

// BenchmarkGetBulk measures reads of a hundred random records of a million, one by one and together.
// A part of the records is in the overlay, the rest is packed in the file.
func BenchmarkGetBulk(b *testing.B) {
	const records, bulk = 1_000_000, 100
	s, err := Open(filepath.Join(b.TempDir(), "a.kct"), Options{Limit: 1 << 40})
	require.NoError(b, err)
	change, at := benchUpdates(105), update.Stamp(0)
	store := func(n int) {
		for i := range n {
			at++
			s.Apply(at, change(i))
		}
	}
	store(records)
	require.NoError(b, s.Checkpoint())
	for more := true; more; {
		more, err = s.mergeOn(true)
		require.NoError(b, err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	keys, room := make([][]byte, bulk), make([]byte, 0, 256)
	choose := func() {
		for i := range keys {
			keys[i] = append(keys[i][:0], change(rnd.IntN(records))[0].Key...)
		}
	}
	for _, inOverlay := range []int{0, records / 3} {
		store(inOverlay)
		b.Run(fmt.Sprintf("one-by-one/overlay=%d", inOverlay), func(b *testing.B) {
			before := processorTime()
			for b.Loop() {
				choose()
				for _, key := range keys {
					if _, found, err := s.Get(room, key, nil); !found || err != nil {
						b.Fatal(found, err)
					}
				}
			}
			b.ReportMetric((processorTime()-before)/float64(b.N)/bulk, "cpu-ns/record")
		})
		b.Run(fmt.Sprintf("together/overlay=%d", inOverlay), func(b *testing.B) {
			b.ReportAllocs()
			before := processorTime()
			for b.Loop() {
				choose()
				hits := 0
				done, err := s.GetBulk(keys, func(_ int, value []byte) { room, hits = append(room[:0], value...), hits+1 })
				if done != bulk || hits != bulk || err != nil {
					b.Fatal(done, hits, err)
				}
			}
			b.ReportMetric((processorTime()-before)/float64(b.N)/bulk, "cpu-ns/record")
		})
	}
	require.NoError(b, s.Abandon())
}

// processorTime returns what the process has used, in nanoseconds.
func processorTime() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // of this process it does not fail
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCheckpoint measures how long the file needs to take new records.
func BenchmarkCheckpoint(b *testing.B) {
	benchKinds(b, func(b *testing.B, s *Store) {
		change, at := benchUpdates(40), update.Stamp(0)
		for b.Loop() {
			b.StopTimer()
			for range benchRecords {
				at++
				s.Apply(at, change(int(at)))
			}
			b.StartTimer()
			require.NoError(b, s.Checkpoint())
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRecords, "ns/record")
	})
}
