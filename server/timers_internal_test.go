package server

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"gotycoon/internal/klog"

	"github.com/stretchr/testify/require"
)

// No client waits for the action of a timer, so a panic must be in the log.
func TestAPanicInTheBackgroundIsInTheLog(t *testing.T) {
	var log bytes.Buffer
	timers, calls, done := newTimers(newLogger(klog.Original, &log, slog.LevelError)), 0, make(chan struct{})
	timers.every(time.Millisecond, func() {
		switch calls++; calls {
		case 1:
			panic("a mistake")
		case 2:
			close(done)
		}
	})
	<-done
	timers.close()
	require.GreaterOrEqual(t, calls, 2, "the next one comes")
	require.Contains(t, log.String(), "[ERROR]: panic: a mistake: work in the background")
}
