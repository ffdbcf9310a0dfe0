// Package message reads HTTP/1.x requests from a netio.Conn as Kyoto Tycoon 0.9.56 does. It knows
// neither procedures nor records.
//
// A request is read in two steps, so that a caller can refuse a client before it sends a body:
//
//	if fault := r.ReadHead(c); fault != message.NoFault { … }
//	… who is it, and may it do anything? …
//	if fault := r.ReadBody(c); fault != message.NoFault { … }
//	… r.Path(), r.Body() …
//	c.Advance(r.Size)
//
// The lines of the head are read in head.go, a body in chunks in chunks.go.
//
// A request is parsed where it arrives, in the connection's buffer: its texts are slices of the
// buffer and valid until the next Fill, WaitByte or Advance. Only a body in chunks is copied.
//
// # Requests that do not end where they should
//
// The original reads some requests in a way that leaves a part of them in the buffer, and takes
// that part for the next request: it does not read the body of GET, HEAD and DELETE, takes a
// negative Content-Length for none, reads no body with a Transfer-Encoding other than chunked, and
// cuts a header line after 8191 characters. A proxy in front of the server takes the same bytes for
// the body of the first request. So a client could hide a request in a body from the proxy and its
// access rules (request smuggling). Such a request gets the original's answer, since clients send
// such requests, but it is marked Desynchronized: the connection's next bytes must not be read as a
// request. Headers that contradict each other are refused (BadLength).
package message

import (
	"bytes"
	"errors"

	"gotycoon/internal/browser"
	"gotycoon/internal/netio"
)

// Limits of a request. The original has no limit for the header as a whole.
const (
	maxLine   = 8191
	maxHeader = 1 << 20
	maxBody   = 1 << 28
)

// Fault is why a request cannot be served.
type Fault byte

// The faults. After any of them the connection ends.
const (
	NoFault   Fault = iota
	Malformed       // no HTTP request, or its header does not arrive: there is no reply
	TooLarge        // larger than a request may be
	CutOff          // the body does not arrive
	BadChunk        // a chunk does not end where it should
	BadLength       // the headers disagree about the length of the body
	Busy            // there is no memory for the request now
)

// FaultOf returns the fault for a failed read of the connection: Busy or TooLarge if memory was
// refused, otherwise CutOff.
func FaultOf(err error) Fault {
	switch {
	case errors.Is(err, netio.ErrBusy):
		return Busy
	case errors.Is(err, netio.ErrTooLarge):
		return TooLarge
	}
	return CutOff
}

// Method is an HTTP method, as far as the protocol distinguishes methods.
type Method byte

// The methods. Methods is their number.
const (
	Other Method = iota // accepted, with a body
	GET
	HEAD
	POST
	PUT
	DELETE
	Methods
)

// String is the method in lower case.
func (m Method) String() string {
	return [Methods]string{"other", "get", "head", "post", "put", "delete"}[m]
}

// takesBody reports whether the original reads the body of such a request.
func (m Method) takesBody() bool { return m != GET && m != HEAD && m != DELETE }

// span is a part of the request as offsets from its first byte: the buffer may move while the
// request arrives.
type span struct{ from, to int }

// Request is a parsed request. The zero value is ready for ReadHead, and so is a request that has
// been served.
type Request struct {
	Size      int // bytes of the connection's buffer that belong to the request
	Method    Method
	KeepAlive bool // the connection may be used for another request
	Old       bool // HTTP/1.0: the client knows no chunks

	// Desynchronized: the bytes behind the request may be its own rest. Nobody may read them as the
	// next request.
	Desynchronized bool

	// Changed: the head is not in the buffer as it came, since carriage returns were where they do
	// not belong. Such a request cannot be handed on.
	Changed bool

	// FromBrowser: one of the Marks may have been sent by a browser.
	FromBrowser bool

	buf    []byte // the request from its first byte
	line   span   // request line
	target span
	path   span // target up to the first '?'
	query  span
	body   span

	accept        span
	contentType   span
	lastEvent     span // Last-Event-ID
	authorization span
	ktMode        span // X-Kt-Mode
	ktReplicas    span // X-Kt-Replicas
	ktPosition    span // X-Kt-Position
	ktXt          span // X-Kt-Xt
	ktMaxLag      span // X-Kt-Max-Lag

	marks  [browser.Fields]span
	marked [browser.Fields]bool // which of the marks there are

	contentLength int64 // -1: none
	chunked       bool

	credentials []byte // copy of Authorization, where BodyWithRoom may let it be overwritten

	copied []byte // holds buf when the body came in chunks
	held   int    // bytes of copied that count in the connection's account
}

// ReadHead reads the request line and the headers.
func (r *Request) ReadHead(c *netio.Conn) Fault {
	*r = Request{contentLength: -1, copied: r.copied[:0]}
	var lines lineReader
	line, f := lines.next(c)
	if f != NoFault {
		return f
	}
	if !r.parseRequestLine(c.Buffered()[line.from:line.to]) {
		return Malformed
	}
	for {
		line, f = lines.next(c)
		if f != NoFault {
			return f
		}
		if line.from == line.to {
			break
		}
		if !r.header(c.Buffered(), line) {
			return BadLength
		}
	}
	r.buf = c.Buffered()
	r.Size = lines.at
	r.Desynchronized = r.Desynchronized || lines.cut
	r.Changed = lines.moved
	return NoFault
}

// parseRequestLine takes the request line apart. It reports whether the line has the form METHOD
// TARGET VERSION with single spaces between them, and a path in the target. line is at the start of
// the request.
func (r *Request) parseRequestLine(line []byte) bool {
	first := bytes.IndexByte(line, ' ')
	if first < 0 {
		return false
	}
	second := bytes.IndexByte(line[first+1:], ' ')
	if second <= 0 {
		return false
	}
	second += first + 1
	switch string(line[second+1:]) {
	case "HTTP/1.1":
		r.KeepAlive = true
	case "HTTP/1.0":
		r.Old = true
	default:
		return false
	}
	r.Method = methodNamed(line[:first])
	r.line = span{0, len(line)}
	r.target = span{first + 1, second}
	r.path, r.query = r.target, span{second, second}
	if q := bytes.IndexByte(line[first+1:second], '?'); q >= 0 {
		r.path.to = first + 1 + q
		r.query.from = r.path.to + 1
	}
	return r.path.from < r.path.to
}

func methodNamed(name []byte) Method {
	switch string(name) {
	case "GET":
		return GET
	case "HEAD":
		return HEAD
	case "POST":
		return POST
	case "PUT":
		return PUT
	case "DELETE":
		return DELETE
	}
	return Other
}

// ReadBody reads the body, if the request has one.
func (r *Request) ReadBody(c *netio.Conn) Fault {
	r.body = span{r.Size, r.Size}
	switch {
	case r.chunked && r.contentLength >= 0:
		return BadLength
	case !r.Method.takesBody():
		r.Desynchronized = r.Desynchronized || r.chunked || r.contentLength > 0
	case r.contentLength > int64(c.Largest(maxBody)):
		return TooLarge
	case r.contentLength >= 0:
		r.body.to = r.body.from + int(r.contentLength)
		if err := c.Need(r.body.to); err != nil {
			return FaultOf(err)
		}
		r.buf = c.Buffered()[:r.body.to:r.body.to]
		r.Size = r.body.to
	case r.chunked:
		return r.readChunks(c)
	}
	return NoFault
}

func (r *Request) text(s span) []byte { return r.buf[s.from:s.to] }

// Line returns the request line.
func (r *Request) Line() []byte { return r.text(r.line) }

// Target returns path and query as they came.
func (r *Request) Target() []byte { return r.text(r.target) }

// Path returns the target up to the first '?'. Nothing is decoded.
func (r *Request) Path() []byte { return r.text(r.path) }

// Query returns what follows the first '?' of the target.
func (r *Request) Query() []byte { return r.text(r.query) }

// ContentType returns the value of Content-Type.
func (r *Request) ContentType() []byte { return r.text(r.contentType) }

// Announced reports whether the head says that a body follows, and the body is read.
func (r *Request) Announced() bool {
	return r.Method.takesBody() && (r.chunked || r.contentLength > 0)
}

// Accept returns the value of Accept.
func (r *Request) Accept() []byte { return r.text(r.accept) }

// LastEvent returns Last-Event-ID: the stamp behind which a client goes on to watch.
func (r *Request) LastEvent() []byte { return r.text(r.lastEvent) }

// Mode returns the value of X-Kt-Mode.
func (r *Request) Mode() []byte { return r.text(r.ktMode) }

// Position returns X-Kt-Position: what must be applied first, or that the reply's is wanted.
func (r *Request) Position() []byte { return r.text(r.ktPosition) }

// Replicas returns X-Kt-Replicas: on how many followers the client wants what the reply tells.
func (r *Request) Replicas() []byte { return r.text(r.ktReplicas) }

// Expiry returns the value of X-Kt-Xt.
func (r *Request) Expiry() []byte { return r.text(r.ktXt) }

// MaxLag returns the value of X-Kt-Max-Lag.
func (r *Request) MaxLag() []byte { return r.text(r.ktMaxLag) }

// Chunked reports whether the body comes in chunks, which ReadBody takes from the buffer.
func (r *Request) Chunked() bool { return r.chunked }

// Credentials returns the value of Authorization.
func (r *Request) Credentials() []byte {
	if r.credentials != nil {
		return r.credentials
	}
	return r.text(r.authorization)
}

// Marks returns the headers by which browsers are recognised.
func (r *Request) Marks() (h browser.Headers) {
	for f, there := range r.marked {
		if there {
			h[f] = r.text(r.marks[f])
		}
	}
	return h
}

// Body returns the body. Its capacity ends with the body.
func (r *Request) Body() []byte { return r.text(r.body) }

// BodyWithRoom returns the body together with the n bytes in front of it, which are the end of the
// header. The caller may overwrite them. Credentials stay valid, other headers may be damaged.
func (r *Request) BodyWithRoom(n int) []byte {
	if r.authorization.to > r.body.from-n {
		r.credentials = bytes.Clone(r.text(r.authorization))
	}
	return r.buf[r.body.from-n : r.body.to]
}

// keepCopied is the size up to which the copy of a body in chunks is kept for the next request.
const keepCopied = 64 << 10

// Recycle frees the memory that a large request has needed.
func (r *Request) Recycle() {
	if cap(r.copied) > keepCopied {
		r.copied = nil
	}
}
