package server

import (
	"sync/atomic"
	"time"

	"gotycoon/db"
)

// health answers the probes of the admin listener, which begin before the other parts are open and
// end after they are closed. The parts are set before serve is called, and looked at between serve
// and stop only, see phase.
type health struct {
	phase     phase
	catalog   *db.Catalog
	alarms    *alarms
	following *following
	standing  *standing
}

// phase is why the server cannot be used just now, empty while it can. It is atomic, so whatever
// was written before a phase is set can be read by others after they have read the phase.
type phase struct{ text atomic.Pointer[string] }

func (p *phase) set(text string) { p.text.Store(&text) }

func (p *phase) get() string {
	if text := p.text.Load(); text != nil {
		return *text
	}
	return ""
}

// live returns why the process cannot do its work any more, and should be ended and started again.
func (h *health) live() error {
	if h.phase.get() != "" {
		return nil // it has nothing to do yet, or nothing any more
	}
	return h.catalog.Err()
}

// ready returns why clients should use another server. A server that is meant to refuse updates
// (-ord, -slave-read-only, tunerepl -ro) is ready: clients that update have no business with it,
// and a load balancer in front of such servers must not take them all out.
func (h *health) ready() (reasons []string) {
	return h.reasons(func(k *alarmKind) bool { return k.away })
}

// readyToRead returns why clients that only read should use another server: want of room does not
// concern them.
func (h *health) readyToRead() (reasons []string) {
	return h.reasons(func(k *alarmKind) bool { return k.reads })
}

// notes returns the alarms for which nobody needs to use another server.
func (h *health) notes() []string {
	if h.phase.get() != "" {
		return nil
	}
	return h.list(func(k *alarmKind) bool { return !k.away })
}

func (h *health) reasons(counts func(*alarmKind) bool) []string {
	if phase := h.phase.get(); phase != "" {
		return []string{phase}
	}
	return h.list(counts)
}

// list returns the alarms that count, as everybody may read them who may ask.
func (h *health) list(counts func(*alarmKind) bool) (texts []string) {
	for _, one := range h.alarms.look(time.Now()) {
		if counts(one.kind) {
			texts = append(texts, one.open())
		}
	}
	return texts
}
