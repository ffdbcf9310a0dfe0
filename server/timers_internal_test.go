package server

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a timer does is nobody's request, so nobody but the log can tell that it has panicked.
func TestAPanicInTheBackgroundIsInTheLog(t *testing.T) {
	var log bytes.Buffer
	p := &process{log: newLogger(&log, slog.LevelError)}
	quit, calls := make(chan struct{}), 0
	p.repeat(quit, time.Millisecond, func() {
		if calls++; calls == 1 {
			panic("a mistake")
		}
		close(quit)
	})
	require.Equal(t, 2, calls, "the next one comes")
	require.Contains(t, log.String(), "[ERROR]: panic: a mistake: work in the background")
}
