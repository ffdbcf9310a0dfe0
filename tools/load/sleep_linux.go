package load

import (
	"time"

	"golang.org/x/sys/unix"
)

// fineSleep is the part of a sleep that the system's clock does: Go's timers are good only to a
// millisecond while a program is idle, which would be in every wait.
const fineSleep = 2 * time.Millisecond

// sleepFine sleeps on a thread of its own for less than fineSleep.
func sleepFine(long time.Duration) {
	t := unix.NsecToTimespec(int64(long))
	_ = unix.Nanosleep(&t, nil) // a signal may end it early; the request is then early by as much
}
