package procinfo

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// TakeLongTurns is called by a goroutine that works for long without anybody waiting for it. The
// goroutine gets a thread of its own until it ends. That thread gets as much of a core as before,
// but in long turns: a thread that wakes up and has the usual turns goes first.
//
// Without long turns the system lets the thread finish its turn of about 4 ms before a thread that
// was woken by a request gets the core, on every core where the work runs.
//
// Linux 6.12 and later know turns of threads of the usual kind (sched_setattr(2), sched_runtime).
// Earlier systems ignore them; a system that refuses the call leaves the thread as it is.
func TakeLongTurns() {
	runtime.LockOSThread()
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return
	}
	const usual, batch = unix.SCHED_NORMAL, unix.SCHED_BATCH
	if attr.Policy == usual || attr.Policy == batch {
		attr.Runtime = uint64(longTurn)
		_ = unix.SchedSetAttr(0, attr, 0) // it is a kindness, nothing depends on it
	}
}

// longTurn is long beside the usual turn of 3 ms. It is not longer, since the thread may also be
// away for so long when all cores are busy, perhaps with a lock.
const longTurn = 20 * time.Millisecond
