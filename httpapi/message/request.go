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

	"gotycoon/internal/browser"
)

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

	// Desynchronized: the bytes behind the request may be its own rest. Nobody may read them as the
	// next request.
	Desynchronized bool

	// FromBrowser: one of the Marks may have been sent by a browser.
	FromBrowser bool

	buf    []byte // the request from its first byte
	line   span   // request line
	target span
	path   span // target up to the first '?'
	query  span
	body   span

	contentType   span
	authorization span
	ktMode        span // X-Kt-Mode
	ktXt          span // X-Kt-Xt

	marks  [browser.Fields]span
	marked [browser.Fields]bool // which of the marks there are

	contentLength int64 // -1: none
	chunked       bool

	credentials []byte // copy of Authorization, where BodyWithRoom may let it be overwritten

	copied []byte // holds buf when the body came in chunks
	held   int    // bytes of copied that count in the connection's account
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

// Mode returns the value of X-Kt-Mode.
func (r *Request) Mode() []byte { return r.text(r.ktMode) }

// Expiry returns the value of X-Kt-Xt.
func (r *Request) Expiry() []byte { return r.text(r.ktXt) }

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
