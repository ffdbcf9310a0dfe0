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

// ready returns why clients should use another server. A server that is meant to refuse updates (-ord, -slave-read-only, tunerepl -ro) is ready:
// clients that update have no business with it, and a load balancer in front of such servers must not take them all out.
func (p *process) ready() (reasons []string) {
	reasons = p.readyToRead()
	if p.admin.phase.get() != "" {
		return reasons
	}
	return append(reasons, p.room.Pressure().reasons(*p.tuned.room.Load())...)
}

// readyToRead returns why clients that only read should use another server: want of room does not concern them.
func (p *process) readyToRead() (reasons []string) {
	if phase := p.admin.phase.get(); phase != "" {
		return []string{phase}
	}
	if err := p.catalog.Err(); err != nil {
		reasons = append(reasons, "failed: no update is acknowledged any more: "+err.Error())
	}
	return append(reasons, p.behind(time.Now())...)
}
