//go:build !unix || race

package slab

// Where there are no anonymous mappings, and under the race detector, which watches nothing but Go's heap, chunks come
// from there.

func mapMemory(size int) ([]byte, error) { return make([]byte, size), nil }

func unmapMemory([]byte) {}

func discard([]byte) {}
