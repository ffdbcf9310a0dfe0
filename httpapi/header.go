package httpapi

import (
	"bytes"

	"gotycoon/internal/lenient"
)

// header takes one header line in (3.3). Lines without a colon and names without a meaning are ignored; of a
// repeated header the last one counts. It reports false for headers that contradict each other.
func (r *request) header(buf []byte, line span) (ok bool) {
	text := buf[line.from:line.to]
	colon := bytes.IndexByte(text, ':')
	if colon < 0 {
		return true
	}
	name := trimBlanks(text[:colon])
	value := span{line.from + colon + 1, line.to}
	for value.from < value.to && buf[value.from] == ' ' {
		value.from++
	}
	if text[0] <= ' ' && isLength(name) { // for others this line goes on with the header before it
		return false
	}
	switch len(name) {
	case len("host"), len("origin"), len("accept-language"):
		r.mark(buf, name, value)
	case len("x-kt-xt"):
		if equalFold(name, "x-kt-xt") {
			r.ktXt = value
		} else {
			r.mark(buf, name, value) // Referer
		}
	case len("x-kt-mode"):
		if equalFold(name, "x-kt-mode") {
			r.ktMode = value
		}
	case len("connection"):
		if equalFold(name, "connection") {
			r.connection(buf[value.from:value.to])
		} else {
			r.mark(buf, name, value) // User-Agent
		}
	case len("authorization"):
		if equalFold(name, "authorization") {
			r.authorization = value
		}
	case len("content-type"):
		if equalFold(name, "content-type") {
			r.contentType = value
		}
	case len("content-length"):
		if equalFold(name, "content-length") {
			return r.length(buf[value.from:value.to])
		}
		r.mark(buf, name, value) // Sec-Fetch-Site, Sec-Fetch-Mode
	case len("transfer-encoding"):
		if equalFold(name, "transfer-encoding") {
			r.transferEncoding(buf[value.from:value.to])
		}
	}
	return true
}

func (r *request) connection(value []byte) {
	switch {
	case equalFold(value, "close"):
		r.keepAlive = false
	case equalFold(value, "keep-alive"):
		r.keepAlive = true
	}
}

// length takes a Content-Length. A negative one counts as none, as in the original, but then nobody knows what
// follows. Two different ones contradict each other.
func (r *request) length(value []byte) (ok bool) {
	if bytes.IndexByte(value, ',') >= 0 { // a list of them
		return false
	}
	n := lenient.Int(value)
	if n < 0 {
		r.desynchronized = true
		n = -1
	}
	if r.contentLength >= 0 && n != r.contentLength {
		return false
	}
	r.contentLength = n
	return true
}

// isLength reports whether a header tells where the body ends.
func isLength(name []byte) bool {
	return equalFold(name, "content-length") || equalFold(name, "transfer-encoding")
}

// transferEncoding takes a Transfer-Encoding. Others than chunked mean no body, as in the original, but then nobody
// knows what follows.
func (r *request) transferEncoding(value []byte) {
	r.chunked = equalFold(value, "chunked")
	if !r.chunked {
		r.desynchronized = true
	}
}

// equalFold compares s with want, which is in lower case, in any case of ASCII letters.
func equalFold(s []byte, want string) bool {
	if len(s) != len(want) {
		return false
	}
	for i, c := range s {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != want[i] {
			return false
		}
	}
	return true
}

// trimBlanks removes blanks and control bytes around s.
func trimBlanks(s []byte) []byte {
	for len(s) > 0 && s[0] <= ' ' {
		s = s[1:]
	}
	for len(s) > 0 && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	return s
}
