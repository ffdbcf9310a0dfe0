package httpapi

import (
	"gotycoon/httpapi/message"
	"gotycoon/internal/metrics"
)

// Meters are where the requests of a Handler are counted.
type Meters struct {
	RPC, REST *metrics.Protocol // made by NewMeters; nil: requests are not counted
	Sampling  bool              // not every request has a line in the log
}

// NewMeters returns counters of all procedures, by their names, and of the REST verbs.
func NewMeters() Meters {
	names := make([]string, len(procedures), len(procedures)+1)
	for i := range procedures {
		names[i] = procedures[i].name
	}
	verbs := make([]string, message.Methods)
	for m := range message.Methods {
		verbs[m] = m.String()
	}
	return Meters{
		RPC:  metrics.NewProtocol("rpc", append(names, "unknown")...),
		REST: metrics.NewProtocol("rest", verbs...),
	}
}

// measure counts the request that has been served.
func (s *Session) measure(status int) {
	meter := s.c.Meter
	if meter == nil {
		return
	}
	protocol, command := s.h.opts.Meters.REST, int(s.req.Method)
	if s.rpc {
		protocol, command = s.h.opts.Meters.RPC, s.h.place(s.call.procedure)
	}
	failed := isFailure(status)
	meter.Note(protocol, command, failed)
	if !meter.Detailed() {
		return
	}
	d := metrics.Detail{Protocol: protocol, Command: command, Key: s.call.key, In: s.req.Size, Out: len(s.c.Out), Failed: failed}
	if s.rpc {
		d.Key, _ = s.in.Get("key")
	}
	if s.call.db != nil {
		d.Database = s.call.db.Name()
	}
	meter.Describe(d)
}

// place is the procedure's place in the table; one that does not exist has the place behind the last.
func (h *Handler) place(p *procedure) int {
	if p == nil {
		return len(procedures)
	}
	return h.places[p]
}

// isFailure tells whether a status is more than a normal outcome: a record that is not there, or that should not be, is one.
func isFailure(status int) bool {
	return status >= statusBadRequest && status != statusNotFound && status != statusLogical
}
