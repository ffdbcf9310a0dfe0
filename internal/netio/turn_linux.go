package netio

import (
	"os"

	"golang.org/x/sys/unix"
)

// newEvent returns a descriptor that the netpoller watches: it can be read after a write to it.
func newEvent() (*os.File, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "turn"), nil
}
