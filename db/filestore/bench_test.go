package filestore

import (
	"encoding/binary"
	"path/filepath"
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
			s.view.Swap(newView(newOverlay(0, s.lww))).release()
			for i := range 2 * benchRecords {
				s.Apply(update.Stamp(i+1), change(i%benchRecords))
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRecords/2, "ns/update")
		b.ReportMetric(float64(s.brake.active.Load())/benchRecords, "B/record")
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
