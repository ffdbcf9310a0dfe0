package run

import (
	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/paging"
)

// PackedBucket is the bucket of a file that holds its packed records.
const PackedBucket = "packed"

// PackedKey is the first byte of the names of its blocks.
const PackedKey = 0x04

// packedShare is which part of a block a packed record takes at most: larger ones would leave gaps
// at the ends of blocks.
const packedShare = 2

// PackedMost returns how many bytes the key and the value of a packed record have at most.
func PackedMost(pageSize int) int { return blockRoom(pageSize) / packedShare }

// AnyPacked reports whether a file has packed records.
func AnyPacked(tx *bolt.Tx) bool {
	b := tx.Bucket([]byte(PackedBucket))
	if b == nil {
		return false
	}
	k, _ := b.Cursor().First()
	return k != nil
}

// FindPacked looks a key up in the bucket of packed records. The slice is valid while the
// transaction is open.
func FindPacked(b *bolt.Bucket, key []byte) (value []byte, found bool, err error) {
	return findInBlocks(b, PackedKey, key)
}

// FindPackedOnDisk is FindPacked for a file that is larger than memory: see paging.Mirror.
func FindPackedOnDisk(b *bolt.Bucket, key []byte, m *paging.Mirror) (value []byte, found bool, err error) {
	return findOnDisk(b, PackedKey, key, m)
}

// PackedCursor returns a cursor on packed records, which compares the checksum of each block. What
// it gives as flagged is the value.
func PackedCursor(b *bolt.Bucket, backward bool) *Cursor { return newCursor(b, PackedKey, backward) }
