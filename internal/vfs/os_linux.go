package vfs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes an open file description lock: unlike the classic fcntl lock, with which it
// conflicts as it should, it does not vanish when the process closes some other descriptor of the
// same file.
func tryLock(f *os.File) error {
	lk := unix.Flock_t{Type: unix.F_WRLCK}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return ErrLocked
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// syncData leaves out the times of the file, which saves a journal write when the size has not
// changed.
func syncData(f *os.File) error { return call(f, "fdatasync", unix.Fdatasync) }

// startSync starts the writes of all pages that have changed, and leaves out those that are on
// their way already. A file system that has no such call needs none.
func startSync(f *os.File) error {
	return call(f, "sync_file_range", func(fd int) error {
		err := unix.SyncFileRange(fd, 0, 0, unix.SYNC_FILE_RANGE_WRITE)
		switch {
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ESPIPE), errors.Is(err, unix.EPERM):
			return nil
		}
		return err
	})
}

// call makes a system call about a file, and holds off a concurrent Close meanwhile.
func call(f *os.File, name string, make func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		for {
			if failed = make(int(fd)); !errors.Is(failed, unix.EINTR) {
				return
			}
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return &os.PathError{Op: name, Path: f.Name(), Err: err}
	}
	return nil
}
