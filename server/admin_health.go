package server

import (
	"fmt"
	"sync/atomic"
	"time"

	"gotycoon/ulog"
)

// phase is why the server cannot be used just now, empty while it can. What is set before a phase can be read after it.
type phase struct{ text atomic.Pointer[string] }

func (p *phase) set(text string) { p.text.Store(&text) }

func (p *phase) get() string {
	if text := p.text.Load(); text != nil {
		return *text
	}
	return ""
}

// live returns why the process cannot do its work any more, and should be ended and started again.
func (p *process) live() error {
	if p.admin.phase.get() != "" {
		return nil // it has nothing to do yet, or any more
	}
	return p.catalog.Err()
}

// ready returns why clients should use another server.
func (p *process) ready() (reasons []string) {
	if phase := p.admin.phase.get(); phase != "" {
		return []string{phase}
	}
	if err := p.catalog.Err(); err != nil {
		reasons = append(reasons, "failed: no update is acknowledged any more: "+err.Error())
	}
	if p.cfg.ReadOnly {
		reasons = append(reasons, "read-only: the server was started with -ord")
	}
	limit := p.cfg.Admin.ReadyLag
	if lag, following := p.lag(time.Now()); following && limit > 0 && lag > limit {
		reasons = append(reasons, fmt.Sprintf("behind its master: %.1f s, more than the %.1f s of -ready-lag", lag.Seconds(), limit.Seconds()))
	}
	return reasons
}

// lag returns how far this server is behind the clock of its master, if it has one.
func (p *process) lag(now time.Time) (lag time.Duration, following bool) {
	if p.follower == nil {
		return 0, false
	}
	at, following := p.follower.Position()
	return max(0, time.Duration(int64(ulog.StampAt(now)-at))), following
}
