package sequence

import (
	"log/slog"
	"sync"
	"time"
)

// reporter limits the log lines of errors that every call can meet, as on a full disk: it writes
// one line a second.
type reporter struct {
	logger *slog.Logger

	mu     sync.Mutex // protects the fields below
	last   time.Time
	passed int // errors since the last line
}

func (r *reporter) report(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passed++
	if now := time.Now(); now.Sub(r.last) >= time.Second {
		r.logger.Error("coconut: "+err.Error(), "calls", r.passed)
		r.last, r.passed = now, 0
	}
}
