package webport

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"gotycoon/internal/browser"
	"gotycoon/internal/netio"
)

const (
	maxHead = 64 << 10 // request line and header lines
	maxBody = 1 << 20  // bodies have no meaning here and are skipped
)

// The reader of requests. It differs from the reader of package httpapi, which imitates another
// original, in every step but the two versions of HTTP:
//
//	                              here                          httpapi
//	CR within a line              refused                       dropped
//	NUL in a header               refused                       hides the rest of the line
//	long lines                    the head has 64 KiB           cut at 8191 characters
//	other methods (PATCH)         refused                       served as POST is
//	header without a colon        refused                       ignored
//	blanks around a name          refused                       ignored
//	continued header              refused                       ignored, or 400
//	Content-Length: +4abc         refused                       4
//	Content-Length: -1            refused                       no body
//	longest body                  1 MiB, skipped                256 MiB, read, else 413
//	Transfer-Encoding: chunked    refused                       read
//	body of GET                   skipped                       ends the connection after a reply
//	reply to HEAD                 has a body                    has none
//	credentials, Connection       blanks and tabs around the    only blanks before the
//	                              value have no meaning         value have none
//
// "Refused" means that the connection ends without a reply, as coconut ends it where it does not
// understand a request. TestMalformedRequestsEndTheConnection has these cases, and those of httpapi
// are in its TestRequestLinesAndHeaders. One reader with a switch for each row would be longer than
// the two, and a change for one original could change the other.

// errRequest ends a connection without a reply, as the original does when it cannot parse a
// request.
var errRequest = errors.New("malformed request")

// methods are all treated alike.
var methods = []string{"GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "TRACE"}

// request is the part of an HTTP message that matters here. Its slices are valid until the
// connection reads on.
type request struct {
	target  []byte // path and query, as sent: nothing is decoded
	version string // "HTTP/1.0" or "HTTP/1.1"
	keep    bool   // the connection stays open after the reply
	body    int    // bytes that follow the head
	sized   bool   // the head has a Content-Length

	authorization []byte // the header's value
	marks         browser.Headers
}

// call returns the path and the query of a request.
func (r *request) call() (path, query []byte) {
	path, query, _ = bytes.Cut(r.target, []byte("?"))
	return path, query
}

// readRequest reads the head of the next request, which may arrive in any number of pieces.
func readRequest(c *netio.Conn) (r request, err error) {
	for seen := 0; ; {
		buffered := c.Buffered()
		if size := headSize(buffered, seen); size > 0 {
			r, err = parseHead(buffered[:size])
			c.Advance(size)
			return r, err
		}
		if len(buffered) >= maxHead {
			return r, errRequest
		}
		seen = max(0, len(buffered)-3)
		if err := c.Fill(); err != nil {
			return r, err
		}
	}
}

// headSize returns the length of a complete head with its empty line, 0 if the head is not
// complete. The caller has looked at the first from bytes before.
func headSize(b []byte, from int) int {
	for i := from; ; {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			return 0
		}
		i += n + 1
		rest := b[i:]
		if len(rest) > 0 && rest[0] == '\n' {
			return i + 1
		}
		if len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n' {
			return i + 2
		}
	}
}

func parseHead(head []byte) (r request, err error) {
	line, rest := cutLine(head)
	method, line, _ := bytes.Cut(line, []byte(" "))
	target, version, _ := bytes.Cut(line, []byte(" "))
	if len(target) == 0 || bytes.IndexByte(target, 0) >= 0 || !slices.Contains(methods, string(method)) {
		// Keys end names with a zero byte: a name with such a byte would reach other records.
		return r, errRequest
	}
	r.target = target
	switch string(version) {
	case "HTTP/1.1":
		r.version, r.keep = "HTTP/1.1", true
	case "HTTP/1.0":
		r.version = "HTTP/1.0"
	default:
		return r, errRequest
	}
	for {
		if line, rest = cutLine(rest); len(line) == 0 {
			break
		}
		if err := r.header(line); err != nil {
			return r, err
		}
	}
	if string(method) == "HEAD" {
		// The reply has a body, as the original's has, so only the end of the connection ends it.
		r.keep = false
	}
	return r, nil
}

// cutLine returns the text up to the next LF, without a CR before it, and what follows.
func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), rest
}

// header reads one header line. A line that a proxy might understand differently is refused, even
// if the header has no meaning here: a proxy and a server that disagree about headers also disagree
// about where a body ends, and then a body can pass for the next request.
func (r *request) header(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 || has(name, ' ') || has(name, '\t') || has(line, '\r') || has(line, 0) {
		return errRequest // also a continuation of the header line before
	}
	if f, ok := browser.FieldNamed(name); ok {
		if r.marks[f] = bytes.TrimSpace(value); r.marks[f] == nil {
			r.marks[f] = []byte{} // empty, but present
		}
		return nil
	}
	switch len(name) {
	case len("Connection"), len("Authorization"), len("Content-Length"), len("Transfer-Encoding"):
		return r.knownHeader(name, bytes.Trim(value, " \t"))
	}
	return nil
}

func has(text []byte, b byte) bool { return bytes.IndexByte(text, b) >= 0 }

func (r *request) knownHeader(name, value []byte) error {
	switch {
	case bytes.EqualFold(name, []byte("Connection")):
		if bytes.EqualFold(value, []byte("close")) {
			r.keep = false
		} else if bytes.EqualFold(value, []byte("keep-alive")) {
			r.keep = true
		}
	case bytes.EqualFold(name, []byte("Authorization")):
		r.authorization = value
	case bytes.EqualFold(name, []byte("Content-Length")):
		return r.length(value)
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		// Chunks would have to be parsed, and no client of this protocol sends a body.
		return errRequest
	}
	return nil
}

// length reads a Content-Length. Two different lengths contradict each other and are refused.
func (r *request) length(value []byte) error {
	size, err := strconv.ParseUint(string(value), 10, 31)
	if err != nil || size > maxBody || r.sized && int(size) != r.body {
		return errRequest
	}
	r.body, r.sized = int(size), true
	return nil
}

// skipBody reads past a body.
func skipBody(c *netio.Conn, size int) error {
	for size > 0 {
		n := min(size, len(c.Buffered()))
		c.Advance(n)
		if size -= n; size == 0 {
			return nil
		}
		if err := c.Fill(); err != nil {
			return err
		}
	}
	return nil
}

// Params calls take with the name and value of each parameter of a query, until take returns false;
// it reports whether take never did. A word without "=" is a value with the empty name.
func Params(query []byte, take func(name string, value []byte) bool) bool {
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte("&"))
		name, value, ok := bytes.Cut(pair, []byte("="))
		if !ok {
			name, value = nil, pair
		}
		if !take(string(name), value) {
			return false
		}
	}
	return true
}
