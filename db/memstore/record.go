package memstore

import (
	"encoding/binary"

	"gotycoon/internal/pieces"
)

// A record of a hash table is a block of
//
//	┌───────────────┬─────────────────┬───────────────────┬─────┬───────┐
//	│ links (Cache) │ uvarint: key    │ uvarint: value    │ key │ value │
//	│ 10 bytes      │ size            │ size              │     │       │
//	└───────────────┴─────────────────┴───────────────────┴─────┴───────┘

// recordSize returns the size of a record without links.
func recordSize(key, value []byte) int {
	return uvarintSize(len(key)) + uvarintSize(len(value)) + len(key) + len(value)
}

// putRecord writes a record without links.
func putRecord(block, key, value []byte) {
	n := binary.PutUvarint(block, uint64(len(key)))
	n += binary.PutUvarint(block[n:], uint64(len(value)))
	n += copy(block[n:], key)
	pieces.Copy(block[n:], value)
}

// parseRecord returns the parts of a record without links. Their capacity ends with them.
func parseRecord(block []byte) (key, value []byte) {
	keySize, valueSize, n := recordSizes(block)
	end := n + keySize + valueSize
	return block[n : n+keySize : n+keySize], block[n+keySize : end : end]
}

// recordSizes returns the sizes of the parts and where the key begins. Most records have sizes of one byte each.
func recordSizes(block []byte) (keySize, valueSize, n int) {
	if block[0] < 0x80 && block[1] < 0x80 {
		return int(block[0]), int(block[1]), 2
	}
	k, n := binary.Uvarint(block)
	v, m := binary.Uvarint(block[n:])
	return int(k), int(v), n + m
}

// uvarintSize returns the number of bytes that n takes as a uvarint.
func uvarintSize(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}
