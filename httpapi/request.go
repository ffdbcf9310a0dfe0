package httpapi

import (
	"bytes"

	"gotycoon/internal/browser"
)

// Limits of a request (reference 1.5). The original has none for the header as a whole.
const (
	maxLine   = 8191
	maxHeader = 1 << 20
	maxBody   = 1 << 28
)

// method is what the protocol distinguishes.
type method byte

const (
	methodOther method = iota // accepted, with a body
	methodGET
	methodHEAD
	methodPOST
	methodPUT
	methodDELETE
	methods // how many there are
)

// span is a part of the request as offsets from its first byte: the buffer may move while the request arrives.
type span struct{ from, to int }

// request is a parsed request. Its texts are slices of the connection's buffer.
type request struct {
	buf  []byte // the request from its first byte
	size int    // bytes of the connection's buffer that belong to it

	method    method
	keepAlive bool
	rpc       bool
	line      span // request line
	target    span
	path      span // target up to the first '?'
	query     span
	body      span

	contentType   span
	authorization span
	ktMode        span // X-Kt-Mode
	ktXt          span // X-Kt-Xt

	marks  [browser.Fields]span // values of headers that browsers send
	marked [browser.Fields]bool // which of them there are
	tells  bool                 // one of them may be a browser's mark

	contentLength int64 // -1: none
	chunked       bool

	// desynchronized: what follows the request may not be a request, but rest of this one, so it is not
	// looked at and the connection ends.
	desynchronized bool

	credentials []byte // copy of Authorization, where a large value has overwritten it

	copied []byte // holds buf when the body came in chunks
	held   int    // bytes of it that count
}

func (r *request) reset() {
	*r = request{contentLength: -1, copied: r.copied[:0]}
}

func (r *request) text(s span) []byte { return r.buf[s.from:s.to] }

// presented returns the credentials of the request.
func (r *request) presented() []byte {
	if r.credentials != nil {
		return r.credentials
	}
	return r.text(r.authorization)
}

func (r *request) isRPC() bool { return r.rpc }

const rpcPrefix = "/rpc/"

// parseRequestLine takes the request line apart (3.1) and reports whether it is one. line is at the start of buf.
func (r *request) parseRequestLine(line []byte) bool {
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
		r.keepAlive = true
	case "HTTP/1.0":
	default:
		return false
	}
	r.method = methodNamed(line[:first])
	r.line = span{0, len(line)}
	return r.parseTarget(line, span{first + 1, second})
}

func (r *request) parseTarget(line []byte, target span) bool {
	r.target, r.path = target, target
	r.query = span{target.to, target.to}
	if q := bytes.IndexByte(line[target.from:target.to], '?'); q >= 0 {
		r.path.to = target.from + q
		r.query.from = r.path.to + 1
	}
	r.rpc = bytes.HasPrefix(line[r.path.from:r.path.to], []byte(rpcPrefix))
	return r.path.from < r.path.to
}

func methodNamed(name []byte) method {
	switch string(name) {
	case "GET":
		return methodGET
	case "HEAD":
		return methodHEAD
	case "POST":
		return methodPOST
	case "PUT":
		return methodPUT
	case "DELETE":
		return methodDELETE
	}
	return methodOther
}

// takesBody reports whether the original reads the body of such a request.
func (m method) takesBody() bool {
	return m != methodGET && m != methodHEAD && m != methodDELETE
}
