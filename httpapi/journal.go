package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"gotycoon/db/dberr"
	"gotycoon/httpapi/message"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
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

// journal writes the log lines about the requests of a connection, and counts them for the metrics.
type journal struct {
	h    *Handler
	c    *netio.Conn
	peer string
}

// line returns the line of the request for the log, or "" when nobody reads it.
func (j *journal) line(r *message.Request) string {
	if j.h.opts.Meters.Sampling || !j.h.opts.Logger.Enabled(context.Background(), slog.LevelInfo) {
		return ""
	}
	return string(r.Line())
}

// logRequest writes the line that every parsed request gets.
func (j *journal) logRequest(line string, status int) {
	if line == "" || status == statusBroken {
		return
	}
	j.h.opts.Logger.Info(fmt.Sprintf("(%s): %s: %d", j.peer, line, status))
}

// logFailure writes the line about a database error that was not expected.
func (j *journal) logFailure(status int, err error) {
	if status != statusInternal || dberr.Refused(err) {
		return
	}
	if e, ok := errors.AsType[*dberr.Error](err); ok {
		j.h.opts.Logger.Error("database error: " + e.Error())
	}
}

// refused counts a request that was not served.
func (j *journal) refused() {
	j.c.Meter.Note(j.h.opts.Meters.REST, int(message.Other), true)
}

// measure counts the request that has been served. A record that is not there, or that should not
// be there, is a normal outcome.
func (j *journal) measure(s *Session, status int) {
	meter := j.c.Meter
	if meter == nil {
		return
	}
	protocol, command := j.h.opts.Meters.REST, int(s.req.Method)
	if s.call.rpc {
		protocol, command = j.h.opts.Meters.RPC, len(procedures) // unknown
		if p := s.call.procedure; p != nil {
			command = p.place
		}
	}
	failed := status >= statusBadRequest && status != statusNotFound && status != statusLogical
	meter.Note(protocol, command, failed)
	if !meter.Detailed() {
		return
	}
	d := metrics.Detail{Protocol: protocol, Command: command, Key: s.call.key, In: s.req.Size, Out: len(j.c.Out), Failed: failed}
	if s.call.rpc {
		d.Key, _ = s.in.Get("key")
	}
	if s.call.db != nil {
		d.Database = s.call.db.Name()
	}
	meter.Describe(d)
}

// count adds a call to the counters of report. A call that was wrong as such is not counted.
func (h *Handler) count(t tally, err error) {
	if t == tallyNone || err != nil && isBadRequest(err) {
		return
	}
	c := h.opts.Counts
	switch t {
	case tallySet:
		addCall(&c.Set, &c.SetMisses, err)
	case tallyRemove:
		addCall(&c.Remove, &c.RemoveMisses, err)
	case tallyGet:
		addCall(&c.Get, &c.GetMisses, err)
	case tallySeize:
		addCall(&c.Get, &c.GetMisses, err)
		addCall(&c.Remove, &c.RemoveMisses, err)
	case tallyMisc:
		c.Misc.Add(1)
	}
}

func addCall(calls, misses *atomic.Int64, err error) {
	calls.Add(1)
	if err != nil {
		misses.Add(1)
	}
}
