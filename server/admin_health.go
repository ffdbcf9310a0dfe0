package server

import (
	"sync/atomic"
	"time"
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
	reasons = p.readyToRead()
	if p.admin.phase.get() != "" {
		return reasons
	}
	if p.cfg.ReadOnly {
		reasons = append(reasons, "read-only: the server was started with -ord")
	}
	return append(reasons, p.room.Pressure().reasons(*p.tuned.room.Load())...)
}

// readyToRead is ready for clients that do not update anything.
func (p *process) readyToRead() (reasons []string) {
	if phase := p.admin.phase.get(); phase != "" {
		return []string{phase}
	}
	if err := p.catalog.Err(); err != nil {
		reasons = append(reasons, "failed: no update is acknowledged any more: "+err.Error())
	}
	return append(reasons, p.behind(time.Now())...)
}
