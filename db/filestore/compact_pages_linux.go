package filestore

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropPages tells the system that nobody needs pages of a file soon. They are on the disk.
func dropPages(f *os.File, from, size int64) {
	_ = unix.Fadvise(int(f.Fd()), from, size, unix.FADV_DONTNEED) // advice
}
