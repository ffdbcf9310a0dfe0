package rawio

import (
	"syscall"
	"unsafe"
)

// Read is read(2) on a socket that does not block. p is not empty; n is 0 at the end of the stream.
func Read(fd uintptr, p []byte) (n int, errno syscall.Errno) { return call(syscall.SYS_READ, fd, p) }

// Write is write(2) on a socket that does not block. p is not empty.
func Write(fd uintptr, p []byte) (n int, errno syscall.Errno) { return call(syscall.SYS_WRITE, fd, p) }

func call(trap, fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		switch errno {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
