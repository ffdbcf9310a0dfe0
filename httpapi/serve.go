package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"gotycoon/client/wire/tsv"
	"gotycoon/httpapi/jsonrows"
	"gotycoon/httpapi/message"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
)

// ServeOne answers the request that begins with the first buffered byte and reports whether the
// connection may be used further. When it may not, the caller sends what is in Out and closes it.
func (s *Session) ServeOne() (keep bool) {
	defer s.recycle()
	if !s.readRequest() {
		if s.moving {
			return false
		}
		s.conn.Meter.Note(s.opts.Meters.REST, int(message.Other), true)
		return false
	}
	line := s.requestLine() // serving the request changes the buffer
	var status int
	if s.rpc {
		status = s.serveRPC()
	} else {
		status = s.serveREST()
	}
	s.logRequest(line, status)
	s.measure(status)
	if s.conn.Owes() {
		s.conn.Answered(s.reply.unconfirmed(s.rpc))
	}
	s.conn.Advance(s.req.Size)
	if !s.req.KeepAlive || status == statusBroken {
		return false
	}
	if len(s.conn.Out) >= maxUnsent && s.conn.Flush() != nil {
		return false
	}
	if s.req.Desynchronized {
		s.awaitEnd()
		return false
	}
	return true
}

// readRequest reads a request and reports whether it is to be served. It answers a request that is
// refused. A client who may not do anything is refused before anything behind the head is read, and
// so is a request that a web page makes without its user's intent: what the page has put into the
// body must never be taken for the next request.
func (s *Session) readRequest() bool {
	if fault := s.req.ReadHead(s.conn); fault != message.NoFault {
		s.reply.refusal(fault)
		return false
	}
	s.rpc = bytes.HasPrefix(s.req.Path(), []byte(rpcPrefix))
	s.reply.json = s.rpc && wantsJSON(&s.req)
	if s.req.FromBrowser {
		s.reply.browser = s.gate.ofBrowser()
	}
	if s.conn.Visitor != nil && !s.gate.enter() || s.req.FromBrowser && !s.gate.wantedByUser(s.rpc) {
		s.logRequest(s.requestLine(), s.gate.denied.Status())
		s.reply.denial(s.gate.denied, s.rpc, false)
		return false
	}
	if s.opts.Forward != nil && s.moveHead() {
		return false
	}
	if fault := s.req.ReadBody(s.conn); fault != message.NoFault {
		s.reply.refusal(fault)
		return false
	}
	return s.opts.Forward == nil || !s.moveBody()
}

// serveRPC answers a procedure call. The order is WAIT, DB, CUR, the procedure, SIGNAL.
func (s *Session) serveRPC() (status int) {
	p, name, err := s.decodeInput()
	if lack := s.in.Err(); lack != nil {
		return s.reply.noMemory(lack)
	}
	s.procedure = p
	if err != nil {
		s.out.fail(err)
		s.reply.table(p, &s.out, statusBadRequest)
		return statusBadRequest
	}
	guarded := s.conn.Visitor != nil
	if guarded && !s.gate.admit(p) {
		return s.replyDenied()
	}
	if signal, ok := s.in.Get("WAIT"); ok {
		err = s.waitForSignal(signal)
	}
	if guarded && err == nil && s.conn.Visitor.Outdated() && !s.gate.allowed(s.gate.mayCall()) {
		return s.replyDenied()
	}
	if err == nil {
		text := s.req.Replicas()
		if row, _ := s.in.Get("REPLICAS"); len(row) > 0 {
			text = row
		}
		err = s.wantReplicas(text)
	}
	if err == nil {
		text := s.req.Position()
		if row, ok := s.in.Get("POSITION"); ok {
			text = row
		}
		if err = s.askPosition(text); err == nil {
			err = s.instead(string(name), s.run(p, name))
		}
	}
	if err != nil && (errors.Is(err, errBroken) || errors.Is(err, netio.ErrGone)) {
		return statusBroken
	}
	if guarded && s.gate.overtaken() {
		return s.replyDenied()
	}
	if lack := s.lack(); lack != nil {
		return s.reply.noMemory(lack)
	}
	if s.watch != nil && err == nil {
		return s.serveWatch()
	}
	status = statusOK
	if err != nil {
		status = statusOf(p, err)
		s.out.fail(err)
		s.logFailure(status, err)
	}
	if at := s.reply.positioned; at != nil && err == nil && s.in.Has("POSITION") {
		s.out.addText("POSITION", strconv.FormatUint(uint64(at()), 10))
		s.out.rows.Sort()
	}
	if signal, ok := s.in.Get("SIGNAL"); ok && !s.mute {
		switch err := s.sendSignal(signal); {
		case errors.Is(err, errBroken):
			return statusBroken
		case err != nil:
			status = statusUnavailable
			s.out.fail(err)
		}
	}
	if d := &s.document; d.text != "" && status == statusOK {
		s.reply.text(status, s.req.KeepAlive, d.kind, d.text)
	} else {
		s.reply.table(p, &s.out, status)
	}
	return status
}

// decodeInput fills the table of inputs from query and body and finds the procedure, nil for an
// unknown one. Path and query are decoded in a copy, since the request line is still needed.
func (s *Session) decodeInput() (p *procedure, name []byte, err error) {
	path := s.req.Path()[len(rpcPrefix):]
	s.text = append(append(s.text[:0], path...), s.req.Query()...)
	name = tsv.DecodeURL(s.text[:len(path):len(path)])
	p = s.table.byName[string(name)]
	tsv.DecodeForm(&s.in.Rows, s.text[len(path):])
	if sendsJSON(&s.req) {
		if err = jsonrows.Decode(&s.in.Rows, s.req.Body(), p.flag); err == nil {
			err = p.checkMembers(&s.in.Rows)
		}
		if err == nil {
			err = p.checkNumbers(&s.in.Rows)
		}
		return p, name, err
	}
	tsv.Decode(&s.in.Rows, s.req.Body(), s.req.ContentType())
	return p, name, nil
}

// run finds database and cursor, calls the procedure if it has what it needs, and counts the call.
func (s *Session) run(p *procedure, name []byte) error {
	expr, _ := s.in.Get("DB")
	s.db = s.database(expr)
	var err error
	if id, ok := s.in.Get("CUR"); ok {
		err = s.pickCursor(id)
	}
	if err == nil {
		switch {
		case p == nil:
			err = fmt.Errorf("%w: %s", errNotImplemented, name)
		case p.uses == usesDB && s.db == nil:
			err = s.noDatabase()
		case p.uses == usesCursor && s.cur == nil:
			err = errNoCursor
		default:
			err = p.run(&s.call)
			s.count(p.tally, err)
		}
	}
	if err != nil && noMemory(err) {
		s.out.lack = err
	}
	if s.cur != nil {
		if err := s.weighCursor(); err != nil {
			s.out.lack = err
		}
	}
	return err
}

// measure counts the request that has been served. A record that is not there, or that should not
// be there, is a normal outcome.
func (s *Session) measure(status int) {
	meter := s.conn.Meter
	if !meter.Wanted() {
		return
	}
	protocol, command := s.opts.Meters.REST, int(s.req.Method)
	if s.rpc {
		protocol, command = s.opts.Meters.RPC, len(s.table.rows) // unknown
		if p := s.procedure; p != nil {
			command = p.place
		}
	}
	failed := status >= statusBadRequest && status != statusNotFound && status != statusLogical
	meter.Note(protocol, command, failed)
	if !meter.Detailed() || s.unseen {
		return
	}
	d := metrics.Detail{Protocol: protocol, Command: command, Key: s.key, In: s.req.Size, Out: len(s.conn.Out), Failed: failed}
	if s.rpc {
		d.Key, _ = s.in.Get("key")
	}
	if s.db != nil {
		d.Database = s.db.Name()
	}
	if p := s.procedure; s.rpc && p != nil && p.need.about == aboutKeys {
		d.Bulk = true
		meter.Keys(d, s.in.keys)
	}
	meter.Describe(d)
}

// recycle prepares the session for the next request.
func (s *Session) recycle() {
	s.call.recycle()
	s.text = shrink(s.text)
	s.rpc, s.moving, s.procedure, s.key = false, false, nil, nil
	s.conn.Owed.Replicas, s.reply.positioned, s.reply.json, s.reply.browser = 0, nil, false, false
	if s.conn.Visitor != nil {
		s.gate.forget()
		s.conn.Owed.Rights = nil
	}
}
