package httpapi

import (
	"bytes"
	"errors"

	"gotycoon/access"
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
	peer string
	heed db.Heed // ends work that takes long

	cursors map[int64]*cursor // by the client's number; nil until the first one
	lack    error             // there is no memory for the request's output

	denied *access.Denied // why the request is refused; nil: it is not (access.go)

	req   message.Request
	rpc   bool // the request calls a procedure
	call  call
	in    tsv.Rows // input of a procedure
	out   tsv.Rows // its output
	text  []byte   // decoded path and query
	arena []byte   // text of the output
	value []byte   // value of a record

	keys    [][]byte    // of a bulk procedure
	records []db.Record // of a bulk procedure
}

// ServeOne answers the request that begins with the first buffered byte and reports whether the connection may be
// used further. When it may not, the caller sends what is in Out and closes it.
func (s *Session) ServeOne() (keep bool) {
	defer s.recycle()
	if !s.readRequest() {
		s.c.Meter.Note(s.h.opts.Meters.REST, int(message.Other), true)
		return false
	}
	line := s.requestLine()
	var status int
	if s.rpc {
		status = s.serveRPC()
	} else {
		status = s.serveREST()
	}
	s.logRequest(line, status)
	s.measure(status)
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

// readRequest reads a request and reports whether it is to be served. It answers other ones.
func (s *Session) readRequest() bool {
	if fault := s.req.ReadHead(s.c); fault != message.NoFault {
		s.refuse(fault)
		return false
	}
	s.rpc = bytes.HasPrefix(s.req.Path(), []byte(rpcPrefix))
	if s.c.Visitor != nil && !s.enter() || !s.wantedByUser() {
		s.refuseDenied()
		return false
	}
	if fault := s.req.ReadBody(s.c); fault != message.NoFault {
		s.refuse(fault)
		return false
	}
	return true
}

// noMemory reports whether there is no memory for what a request needs.
func noMemory(err error) bool {
	return errors.Is(err, netio.ErrBusy) || errors.Is(err, netio.ErrTooLarge)
}

const crlf = "\r\n"

// replyOpening is what every reply begins with.
const replyOpening = "HTTP/1.1 "

// beginLong sends the replies to earlier requests, so that their clients need not wait for work that may take long.
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

// awaitEnd leaves a connection on which nobody can tell where the next request begins. The client gets its reply
// and may send the rest of its request, up to the first line end or the time limit; then the connection ends.
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
	s.lack = nil
	s.in.Reset(keepRows)
	s.out.Reset(keepRows)
	s.text = shrink(s.text)
	s.arena = shrink(s.arena)
	s.value = shrink(s.value)
	s.req.Recycle()
	s.call = call{}
	s.denied, s.c.Owed.Rights = nil, nil
	if cap(s.keys) > keepRows || cap(s.records) > keepRows {
		s.keys, s.records = nil, nil
	}
}

func shrink(b []byte) []byte {
	if cap(b) > keepScratch {
		return nil
	}
	return b[:0]
}

// Close ends the session and its cursors.
func (s *Session) Close() {
	for _, cur := range s.cursors {
		cur.pos.Close()
	}
	s.cursors = nil
}
