//go:build unix && !race

package slab

import "golang.org/x/sys/unix"

// chunkShift is log2(chunkSize / unit), with which an Addr is shifted to its chunk number: 4 MiB.
const chunkShift = 19

func mapMemory(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// unmapMemory gives a mapping back. It can fail only if the kernel cannot split a mapping; then the
// pages are given back and the addresses stay taken.
func unmapMemory(mem []byte) {
	if err := unix.Munmap(mem); err != nil {
		discard(mem)
	}
}

// discard gives the pages back and keeps the addresses. Should the kernel refuse, they are merely
// kept.
func discard(mem []byte) { _ = unix.Madvise(mem, unix.MADV_DONTNEED) }
