package leader

import (
	"fmt"

	"gotycoon/internal/metrics"
)

// Most reasons why a server is not the primary end in remedy or in force.
const (
	remedy = "'ktremotemgr tunerepl -primary' makes this server the primary"
	force  = "'ktremotemgr tunerepl -primary -force' makes this server the primary"
)

// why returns why this server is not the primary, "" if it is. mu is held.
func (r *Role) why() string {
	sid, term, alone := r.claims.greatest()
	informed := r.informed.Load()
	switch {
	case len(r.claims) == 0 && !informed:
		return "this server waits for what its master has; without it, " + remedy
	case len(r.claims) == 0:
		return "no server is the primary yet; " + remedy
	case !alone:
		return fmt.Sprintf("the servers %v have equal claims to be the primary, so none is; %s", r.claims.rivals(), force)
	case sid != r.opts.SID:
		return fmt.Sprintf("server %d is the primary, this one keeps a copy; %s", sid, remedy)
	case term != r.ours:
		return fmt.Sprintf("this server has lost what it made as the primary (term %d), or another one has its -sid %d too; if not, %s as it is, with what "+
			"others have kept", term, sid, remedy)
	case !informed:
		return "this server was the primary, and waits to hear from its master whether another one is now; if that is gone, " + force
	}
	return ""
}

// Primary returns the server that is the primary, as far as this server knows; ok is false if no
// server is.
func (r *Role) Primary() (sid uint16, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sid, _, ok = r.claims.greatest()
	return sid, ok
}

// Metrics returns the definition of the metric of a Role.
func Metrics() []metrics.Definition {
	return []metrics.Definition{
		metrics.Define("gotycoon_services_primary", metrics.Gauge, "1 while this server changes quotas and gives out fencing tokens, 0 while another one does."),
	}
}

// Figures returns the metric of the role.
func (r *Role) Figures() metrics.Source {
	return metrics.Source{Definitions: Metrics(), Read: func(put metrics.Put) {
		n := 0.0
		if _, err := r.Term(); err == nil {
			n = 1
		}
		put("gotycoon_services_primary", n)
	}}
}
