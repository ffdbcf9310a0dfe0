//go:build !linux

package rawio

import (
	"errors"
	"syscall"
)

// Read is read(2) on a socket that does not block. p is not empty; n is 0 at the end of the stream.
func Read(fd uintptr, p []byte) (n int, errno syscall.Errno) { return call(syscall.Read, fd, p) }

// Write is write(2) on a socket that does not block. p is not empty.
func Write(fd uintptr, p []byte) (n int, errno syscall.Errno) { return call(syscall.Write, fd, p) }

func call(f func(fd int, p []byte) (int, error), fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, err := f(int(fd), p)
		errno, failed := errors.AsType[syscall.Errno](err)
		switch {
		case !failed:
			return n, 0
		case errno != syscall.EINTR:
			return 0, errno
		}
	}
}
