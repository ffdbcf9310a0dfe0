package paging

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const supported = true

// eachAbsent calls visit for pages that are not in memory. room has a byte for each page. Where the
// system refuses, all pages count as present: to a process that may not write a file it says so
// itself.
func eachAbsent(f file, of span, room []byte, visit func(span)) {
	b := f.bytes(of)
	// The system's pages may be smaller than the file's, where the file comes from another machine,
	// or larger. Only equal ones are looked at.
	if f.page != os.Getpagesize() {
		return
	}
	_, _, failed := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&room[0])))
	if failed != 0 {
		return
	}
	for i := 0; i < len(room); {
		if room[i]&1 != 0 {
			i++
			continue
		}
		s := span{of.page + uint64(i), 0}
		for ; i < len(room) && room[i]&1 == 0; i++ {
			s.n++
		}
		visit(s)
	}
}

// willNeed has the system begin to read pages.
func willNeed(b []byte) { _ = unix.Madvise(b, unix.MADV_WILLNEED) } // advice

// pageOut gives clean pages of a file back that are mapped nowhere else; Linux before 5.4 refuses.
func pageOut(b []byte) { _ = unix.Madvise(b, unix.MADV_PAGEOUT) } // advice

// noReadAhead has reads of f bring no more than they ask for.
func noReadAhead(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM) } // advice

// dropFromCache gives pages of a file back that are mapped nowhere.
func dropFromCache(f *os.File, from, size int64) {
	_ = unix.Fadvise(int(f.Fd()), from, size, unix.FADV_DONTNEED) // advice
}

func mapAgain(f *os.File, size int64) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_NORESERVE)
}

func unmap(b []byte) error { return unix.Munmap(b) }
