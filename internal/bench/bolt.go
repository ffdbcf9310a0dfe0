//go:build linux

package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
)

// boltRate measures bbolt itself: sorted batches of 100,000 random keys of a million.
func boltRate(length time.Duration) (float64, error) {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	return boltBatches(filepath.Join(dir, "alone"), length)
}

const batchSize = 100_000

// boltBatches fills a file with a million keys and returns how many records it then stores per
// second.
func boltBatches(path string, length time.Duration) (float64, error) {
	db, err := bolt.Open(path, 0o644, &bolt.Options{FreelistType: bolt.FreelistMapType})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	rnd := rand.New(rand.NewPCG(1, 1))
	for first := uint64(0); first < bulkKeys; first += batchSize {
		if err := boltBatch(db, func(i uint64) uint64 { return first + i }); err != nil {
			return 0, err
		}
	}
	records, begin := 0, time.Now()
	for time.Since(begin) < length {
		if err := boltBatch(db, func(uint64) uint64 { return rnd.Uint64N(bulkKeys) }); err != nil {
			return 0, err
		}
		records += batchSize
	}
	return float64(records) / time.Since(begin).Seconds(), nil
}

func boltBatch(db *bolt.DB, number func(i uint64) uint64) error {
	keys := make([][]byte, batchSize)
	for i := range keys {
		keys[i] = key(number(uint64(i)))
	}
	slices.SortFunc(keys, bytes.Compare)
	return db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("data"))
		if err != nil {
			return err
		}
		for _, k := range keys {
			if err := b.Put(k, value()); err != nil {
				return err
			}
		}
		return nil
	})
}
