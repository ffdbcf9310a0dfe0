//go:build !linux

package load

import "time"

// fineSleep is the part of a sleep that sleepFine does: none, because the timers of these systems
// are fine.
const fineSleep = 0

func sleepFine(long time.Duration) {
	<-time.After(long)
}
