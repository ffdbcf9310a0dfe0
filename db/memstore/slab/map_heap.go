//go:build !unix || race

package slab

// Where there are no anonymous mappings, and under the race detector, which watches nothing but
// Go's heap, chunks come from there.

// chunkShift is log2(chunkSize / unit), with which an Addr is shifted to its chunk number: 512 KiB,
// because memory of the heap is cleared at once.
const chunkShift = 16

func mapMemory(size int) ([]byte, error) { return make([]byte, size), nil }

func unmapMemory([]byte) {}

func discard([]byte) {}
