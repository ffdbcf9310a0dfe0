package rebuild

import (
	"golang.org/x/sys/unix"

	"gotycoon/internal/vfs"
)

// startWriteback lets the disk begin with a part of a file that is complete, so that the sync at
// the end has little left to do. It is a hint only.
func startWriteback(f vfs.File, off, n int64) {
	if file, ok := f.(interface{ Fd() uintptr }); ok {
		_ = unix.SyncFileRange(int(file.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
	}
}
