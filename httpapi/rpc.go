package httpapi

import (
	"errors"
	"fmt"
	"time"

	"gotycoon/db"
	"gotycoon/httpapi/tsv"
	"gotycoon/internal/lenient"
	"gotycoon/internal/netio"
)

// call is one procedure call with its common parameters (section 5).
type call struct {
	db  *db.DB  // nil: there is no such database
	cur *cursor // nil: there is no such cursor

	curID  int64
	curNew bool // the cursor was made for this call
	mute   bool // the call sends no signal, whatever it asks for

	procedure *procedure // nil: there is none of the name
	key       []byte     // of a REST request
}

// serveRPC answers a procedure call. The order is WAIT, DB, CUR, the procedure, SIGNAL.
func (s *Session) serveRPC() (status int) {
	name := s.decodeInput()
	if err := s.in.Err(); err != nil {
		return s.refuseMemory(err)
	}
	p := s.h.procedures[string(name)]
	s.call.procedure = p
	if s.c.Visitor != nil {
		if !s.allowed(s.permit(p)) {
			return s.replyDenied()
		}
		s.c.Owed.Rights = owner{s}
	}
	err := s.waitForSignal()
	if err == nil && s.c.Visitor.Outdated() && !s.allowed(s.permit(p)) {
		return s.replyDenied()
	}
	if err == nil {
		s.pickDatabase()
		err = s.pickCursor()
	}
	if err == nil {
		err = s.run(p, name)
		if noMemory(err) {
			s.lack = err
		}
		s.weighCursor()
	}
	if errors.Is(err, errBroken) || errors.Is(err, netio.ErrGone) {
		return statusBroken
	}
	if s.denied == nil && onlyTells(p) && !s.c.Visitor.Current() {
		_ = owner{s}.Renew() // what has been found is not told any more
	}
	if s.denied != nil {
		return s.replyDenied()
	}
	if lack := s.short(); lack != nil {
		return s.refuseMemory(lack)
	}
	status = statusOf(p, err)
	if err != nil {
		s.failure(status, err)
	}
	if !s.call.mute && s.sendSignal() != nil {
		return statusBroken
	}
	s.replyTable(status)
	return status
}

// decodeInput fills the table of inputs from query and body (4.2) and returns the name of the procedure. Path and
// query are decoded in a copy, since the request line is still needed.
func (s *Session) decodeInput() (name []byte) {
	r := &s.req
	path := r.Path()[len(rpcPrefix):]
	s.text = append(append(s.text[:0], path...), r.Query()...)
	name = tsv.DecodeURL(s.text[:len(path):len(path)])
	tsv.DecodeForm(&s.in, s.text[len(path):])
	tsv.Decode(&s.in, r.Body(), r.ContentType())
	return name
}

// run calls the procedure, when what it needs is there, and counts it.
func (s *Session) run(p *procedure, name []byte) error {
	switch {
	case p == nil:
		return fmt.Errorf("%w: %s", errNotImplemented, name)
	case p.uses == usesDB && s.call.db == nil:
		return errNoDatabase
	case p.uses == usesCursor && s.call.cur == nil:
		return errNoCursor
	}
	err := p.run(s)
	s.count(p.tally, err)
	return err
}

func (s *Session) pickDatabase() {
	expr, _ := s.in.Get("DB")
	s.call.db = s.h.database(expr)
}

// database finds a database as clients name it: a number when it begins with a digit, else a name; nothing is 0.
func (h *Handler) database(expr []byte) *db.DB {
	if len(expr) == 0 {
		return h.opts.Catalog.DB(0)
	}
	if n, ok := lenient.Natural(expr); ok {
		return h.opts.Catalog.DB(int(uint32(n)))
	}
	return h.opts.Catalog.Lookup(string(untilNUL(expr)))
}

// waitDefault is how long WAIT waits without a WAITTIME, and waitMost what a Duration holds with ease.
const (
	waitDefault = 30 * time.Second
	waitMost    = 100 * 365 * 24 * time.Hour
)

// waitForSignal waits for the signal WAIT, if the call asks for one. Earlier replies leave first.
func (s *Session) waitForSignal() error {
	name, ok := s.in.Get("WAIT")
	if !ok {
		return nil
	}
	if s.c.Flush() != nil {
		return errBroken
	}
	arrived := s.h.opts.Signals.Wait(string(name), s.waitTime())
	s.c.Meter.Restart()
	if !arrived {
		s.call.mute = true
		return errTimedOut
	}
	return nil
}

func (s *Session) waitTime() time.Duration {
	text, _ := s.in.Get("WAITTIME")
	seconds := lenient.Float(text)
	switch {
	case !(seconds > 0): // NaN too
		return waitDefault
	case seconds >= waitMost.Seconds():
		return waitMost
	}
	return time.Duration(seconds * float64(time.Second))
}

// sendSignal sends the signal SIGNAL and reports how many were waiting. A signal tells others what this call has done, as a reply does, so
// that must be safe before. An error is the log's, and nothing may be answered.
func (s *Session) sendSignal() error {
	name, ok := s.in.Get("SIGNAL")
	if !ok {
		return nil
	}
	if err := s.c.Owed.Wait(); err != nil {
		s.c.Out = s.c.Out[:0] // earlier replies waited for the same log
		return err
	}
	woken := s.h.opts.Signals.Signal(string(name), s.in.Has("SIGNALBROAD"))
	s.outInt("SIGNALED", int64(woken))
	s.out.Sort() // a procedure may have a row of that name
	return nil
}
