package httpapi

import (
	"errors"

	"gotycoon/internal/netio"
)

// fault is why a request cannot be served.
type fault byte

const (
	faultNone      fault = iota
	faultMalformed       // closed without a word (3.1)
	faultTooLarge        // 413
	faultCutOff          // the body does not arrive: 400
	faultChunk           // a chunk does not end where it should: 400
	faultLength          // the headers disagree about the length of the body: 400
	faultDenied          // the client may do nothing: 401 or 403
	faultBusy            // there is no memory for it now: 503
)

// readRequest reads and parses one request.
func (s *Session) readRequest() fault {
	s.req.reset()
	if f := s.readHead(); f != faultNone {
		return f
	}
	if s.c.Visitor != nil && !s.enter() || !s.wantedByUser() {
		return faultDenied
	}
	return s.readBody()
}

// readHead reads the request line and the headers.
func (s *Session) readHead() fault {
	r := &s.req
	var lines lineReader
	line, f := s.nextLine(&lines)
	if f != faultNone {
		return f
	}
	if !r.parseRequestLine(s.c.Buffered()[line.from:line.to]) {
		return faultMalformed
	}
	for {
		line, f = s.nextLine(&lines)
		if f != faultNone {
			return f
		}
		if line.from == line.to {
			break
		}
		if !r.header(s.c.Buffered(), line) {
			return faultLength
		}
	}
	r.buf = s.c.Buffered()
	r.size = lines.next
	r.desynchronized = r.desynchronized || lines.cut
	return faultNone
}

// nextLine waits for a whole line. What there is no memory for is refused; otherwise a line that does not come is malformed.
func (s *Session) nextLine(lines *lineReader) (span, fault) {
	for {
		line, ok := lines.take(s.c.Buffered())
		if ok {
			return line, faultNone
		}
		if lines.scanned > maxHeader {
			return span{}, faultMalformed
		}
		if err := s.c.Fill(); err != nil {
			if f := faultOf(err); f != faultCutOff {
				return span{}, f
			}
			return span{}, faultMalformed
		}
	}
}

// readBody reads the body, if the request has one (3.4).
//
// The original does not read the body of GET, HEAD and DELETE and takes it for the next request. Such a request
// gets the same answer here, and nothing more is served on its connection.
func (s *Session) readBody() fault {
	r := &s.req
	r.body = span{r.size, r.size}
	switch {
	case r.chunked && r.contentLength >= 0:
		return faultLength
	case !r.method.takesBody():
		r.desynchronized = r.desynchronized || r.chunked || r.contentLength > 0
	case r.contentLength > int64(s.c.Largest(maxBody)):
		return faultTooLarge
	case r.contentLength >= 0:
		return s.readPlain(int(r.contentLength))
	case r.chunked:
		return s.readChunks()
	}
	return faultNone
}

func (s *Session) readPlain(n int) fault {
	r := &s.req
	r.body.to = r.body.from + n
	if err := s.c.Need(r.body.to); err != nil {
		return faultOf(err)
	}
	r.buf = s.c.Buffered()[:r.body.to:r.body.to]
	r.size = r.body.to
	return faultNone
}

// noMemory reports whether there is no memory for what a request needs.
func noMemory(err error) bool {
	return errors.Is(err, netio.ErrBusy) || errors.Is(err, netio.ErrTooLarge)
}

// faultOf is why the rest of a body cannot be read.
func faultOf(err error) fault {
	switch {
	case errors.Is(err, netio.ErrBusy):
		return faultBusy
	case errors.Is(err, netio.ErrTooLarge):
		return faultTooLarge
	}
	return faultCutOff
}
