package httpapi

import (
	"bytes"
	"errors"
	"fmt"

	"gotycoon/db"
	"gotycoon/httpapi/message"
	"gotycoon/httpapi/tsv"
	"gotycoon/internal/netio"
)

const (
	keepScratch = 64 << 10 // larger scratch buffers are not kept for the next request
	keepRows    = 1 << 8   // nor are longer tables

	// maxUnsent is how much the replies to pipelined requests may grow before they are sent.
	maxUnsent = 256 << 10
)

// Session is the HTTP side of one connection. It belongs to the goroutine of the connection.
type Session struct {
	h    *Handler
	c    *netio.Conn
	heed db.Heed // ends work that takes long

	req     message.Request
	gate    gate // whether the client may do what it asks
	call    call
	in      input  // of a procedure
	out     output // of a procedure
	reply   replyWriter
	journal journal
	cursors cursorTable

	text []byte // decoded path and query
	bulk bulk
}

// call is what the request asks for, and of which records.
type call struct {
	rpc       bool       // a procedure is called, not a verb
	procedure *procedure // nil: there is no procedure of the name
	db        *db.DB     // nil: there is no such database
	key       []byte     // of a REST request

	cur    *cursor // nil: there is no such cursor
	curID  int64
	curNew bool // the cursor was made for this call
	mute   bool // the call sends no signal, whatever it asks for
}

// ServeOne answers the request that begins with the first buffered byte and reports whether the
// connection may be used further. When it may not, the caller sends what is in Out and closes it.
func (s *Session) ServeOne() (keep bool) {
	defer s.recycle()
	if !s.readRequest() {
		s.journal.refused()
		return false
	}
	line := s.journal.line(&s.req) // serving the request changes the buffer
	var status int
	if s.call.rpc {
		status = s.serveRPC()
	} else {
		status = s.serveREST()
	}
	s.journal.logRequest(line, status)
	s.journal.measure(s, status)
	s.c.Advance(s.req.Size)
	if !s.req.KeepAlive || status == statusBroken {
		return false
	}
	if len(s.c.Out) >= maxUnsent && s.c.Flush() != nil {
		return false
	}
	if s.req.Desynchronized {
		s.awaitEnd()
		return false
	}
	return true
}

const rpcPrefix = "/rpc/"

// readRequest reads a request and reports whether it is to be served. It answers a request that is
// refused. A client who may not do anything is refused before anything behind the head is read, and
// so is a request that a web page makes without its user's intent: what the page has put into the
// body must never be taken for the next request.
func (s *Session) readRequest() bool {
	if fault := s.req.ReadHead(s.c); fault != message.NoFault {
		s.reply.refusal(fault)
		return false
	}
	s.call.rpc = bytes.HasPrefix(s.req.Path(), []byte(rpcPrefix))
	if s.c.Visitor != nil && !s.gate.enter() || !s.gate.wantedByUser(s.call.rpc) {
		s.journal.logRequest(s.journal.line(&s.req), s.gate.denied.Status())
		s.reply.denial(s.gate.denied, s.call.rpc, false)
		return false
	}
	if fault := s.req.ReadBody(s.c); fault != message.NoFault {
		s.reply.refusal(fault)
		return false
	}
	return true
}

// serveRPC answers a procedure call. The order is WAIT, DB, CUR, the procedure, SIGNAL.
func (s *Session) serveRPC() (status int) {
	name := s.decodeInput()
	if err := s.in.Err(); err != nil {
		return s.reply.noMemory(err)
	}
	p := s.h.procedures[string(name)]
	s.call.procedure, s.gate.procedure = p, p
	if s.c.Visitor != nil {
		if !s.gate.allowed(s.gate.mayCall()) {
			return s.replyDenied()
		}
		s.c.Owed.Rights = &s.gate
	}
	err := s.waitForSignal()
	if err == nil && s.c.Visitor.Outdated() && !s.gate.allowed(s.gate.mayCall()) {
		return s.replyDenied()
	}
	if err == nil {
		err = s.run(p, name)
	}
	if errors.Is(err, errBroken) || errors.Is(err, netio.ErrGone) {
		return statusBroken
	}
	if s.gate.denied == nil && p.onlyTells() && !s.c.Visitor.Current() {
		_ = s.gate.Renew() // what has been found is not told any more
	}
	if s.gate.denied != nil {
		return s.replyDenied()
	}
	if lack := s.lack(); lack != nil {
		return s.reply.noMemory(lack)
	}
	status = statusOf(p, err)
	if err != nil {
		s.out.fail(err)
		s.journal.logFailure(status, err)
	}
	if !s.call.mute && s.sendSignal() != nil {
		return statusBroken
	}
	s.reply.table(&s.out, status)
	return status
}

// decodeInput fills the table of inputs from query and body and returns the name of the procedure.
// Path and query are decoded in a copy, since the request line is still needed.
func (s *Session) decodeInput() (name []byte) {
	path := s.req.Path()[len(rpcPrefix):]
	s.text = append(append(s.text[:0], path...), s.req.Query()...)
	name = tsv.DecodeURL(s.text[:len(path):len(path)])
	tsv.DecodeForm(&s.in.Rows, s.text[len(path):])
	tsv.Decode(&s.in.Rows, s.req.Body(), s.req.ContentType())
	return name
}

// run finds database and cursor, calls the procedure if it has what it needs, and counts the call.
func (s *Session) run(p *procedure, name []byte) error {
	expr, _ := s.in.Get("DB")
	s.call.db = s.h.database(expr)
	err := s.cursors.pick(&s.call, &s.in)
	if err == nil {
		switch {
		case p == nil:
			err = fmt.Errorf("%w: %s", errNotImplemented, name)
		case p.uses == usesDB && s.call.db == nil:
			err = errNoDatabase
		case p.uses == usesCursor && s.call.cur == nil:
			err = errNoCursor
		default:
			err = p.run(s)
			s.h.count(p.tally, err)
		}
	}
	if noMemory(err) {
		s.out.lack = err
	}
	if err := s.cursors.weigh(&s.call); err != nil {
		s.out.lack = err
	}
	return err
}

// lack returns why there is no memory for what the request needs, nil where there is.
func (s *Session) lack() error {
	if s.out.lack != nil {
		return s.out.lack
	}
	if err := s.in.Err(); err != nil {
		return err
	}
	return s.out.rows.Err()
}

// waitForSignal waits for the signal WAIT, if the call asks for one. Earlier replies leave first.
func (s *Session) waitForSignal() error {
	name, ok := s.in.Get("WAIT")
	if !ok {
		return nil
	}
	if s.c.Flush() != nil {
		return errBroken
	}
	arrived := s.h.opts.Signals.Wait(string(name), s.in.waitTime())
	s.c.Meter.Restart()
	if !arrived {
		s.call.mute = true
		return errTimedOut
	}
	return nil
}

// sendSignal sends the signal SIGNAL and reports how many were waiting. A signal tells others what
// this call has done, as a reply does, so the call's updates must be safe before. An error is the
// log's, and nothing may be answered.
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
	s.out.addInt("SIGNALED", int64(woken))
	s.out.rows.Sort() // a procedure may have a row of that name
	return nil
}

// beginLong sends the replies to earlier requests, so that their clients need not wait for work
// that may take long.
func (s *Session) beginLong() error {
	if len(s.c.Out) == 0 {
		return nil
	}
	if s.c.Flush() != nil {
		return errBroken
	}
	s.c.Meter.Restart()
	return nil
}

// replyDenied answers a request for which the client has no right.
func (s *Session) replyDenied() int {
	s.reply.denial(s.gate.denied, s.call.rpc, s.req.KeepAlive)
	return s.gate.denied.Status()
}

// awaitEnd leaves a connection on which nobody can tell where the next request begins. The client
// gets its reply and may send the rest of its request, up to the first line end or the time limit;
// then the connection ends.
func (s *Session) awaitEnd() {
	for {
		rest := s.c.Buffered()
		if bytes.IndexByte(rest, '\n') >= 0 {
			return
		}
		s.c.Advance(len(rest))
		if s.c.Fill() != nil {
			return
		}
	}
}

// recycle prepares the buffers for the next request and lets go of large ones.
func (s *Session) recycle() {
	s.in.Reset(keepRows)
	s.out.recycle()
	s.text = shrink(s.text)
	s.req.Recycle()
	s.call = call{}
	s.gate.forget()
	s.c.Owed.Rights = nil
	s.bulk.recycle()
}

func shrink(b []byte) []byte {
	if cap(b) > keepScratch {
		return nil
	}
	return b[:0]
}

// Close ends the session and its cursors.
func (s *Session) Close() { s.cursors.close() }

// noMemory reports whether an error says that there is no memory for what a request needs.
func noMemory(err error) bool {
	return errors.Is(err, netio.ErrBusy) || errors.Is(err, netio.ErrTooLarge)
}
