package message

import (
	"bytes"

	"gotycoon/internal/browser"
	"gotycoon/internal/lenient"
	"gotycoon/internal/netio"
)

// lineReader cuts the buffered bytes of a request into lines. A line ends with a line feed;
// carriage returns do not count wherever they stand, and a NUL hides the rest of its line. Offsets
// count from the request's first byte.
type lineReader struct {
	at      int  // where the next line begins
	moved   bool // bytes of the request are not where they came any more
	scanned int  // buf[at:scanned] has been searched and has no line end
	chars   int  // characters in buf[at:scanned], carriage returns not counted
	cut     bool // a line was longer than maxLine and has been cut
}

// next waits for a whole line. A line for which there is no memory is refused; any other line that
// does not arrive is malformed.
func (l *lineReader) next(c *netio.Conn) (span, Fault) {
	for {
		line, ok := l.take(c.Buffered())
		if ok {
			return line, NoFault
		}
		if l.scanned > maxHeader {
			return span{}, Malformed
		}
		if err := c.Fill(); err != nil {
			if f := FaultOf(err); f != CutOff {
				return span{}, f
			}
			return span{}, Malformed
		}
	}
}

// take returns the next line without its end, or false when more bytes are needed. It removes
// carriage returns by moving bytes inside buf.
func (l *lineReader) take(buf []byte) (line span, ok bool) {
	fresh := buf[l.scanned:]
	end := bytes.IndexByte(fresh, '\n')
	if end >= 0 {
		fresh = fresh[:end]
	}
	l.chars += len(fresh) - bytes.Count(fresh, []byte{'\r'})
	l.scanned += len(fresh)
	if end < 0 && l.chars < maxLine {
		return span{}, false
	}
	line = span{l.at, l.at + min(l.chars, maxLine)}
	raw, used := buf[l.at:l.scanned], l.scanned+1
	switch {
	case l.chars >= maxLine:
		l.cut = true
		used = l.at + dropReturns(raw)
		l.moved = true
	case l.chars == len(raw): // no carriage return
	case l.chars == len(raw)-1 && raw[len(raw)-1] == '\r': // only where it belongs
	default:
		dropReturns(raw)
		l.moved = true
	}
	l.at, l.scanned, l.chars = used, used, 0
	if nul := bytes.IndexByte(buf[line.from:line.to], 0); nul >= 0 {
		line.to = line.from + nul
	}
	return line, true
}

// dropReturns moves the bytes of raw that are no carriage returns together, up to maxLine of them,
// and returns how many bytes it has looked at.
func dropReturns(raw []byte) (consumed int) {
	n := 0
	for i, c := range raw {
		if c == '\r' {
			continue
		}
		raw[n] = c
		n++
		if n == maxLine {
			return i + 1
		}
	}
	return len(raw)
}

// header reads one header line. It ignores lines without a colon and headers whose names have no
// meaning here; if a header is repeated, the last line counts. ok is false for headers that
// contradict each other.
func (r *Request) header(buf []byte, line span) (ok bool) {
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
	if text[0] <= ' ' && (EqualFold(name, "content-length") || EqualFold(name, "transfer-encoding")) {
		return false // a proxy may take this line for the rest of the header before it
	}
	switch len(name) {
	case len("host"):
		if EqualFold(name, "host") { // every client sends it: it shows no browser
			r.marks[browser.Host], r.marked[browser.Host] = value, true
		}
	case len("accept"):
		if EqualFold(name, "accept") {
			r.accept = value
		} else {
			r.mark(buf, name, value) // Origin
		}
	case len("accept-language"):
		r.mark(buf, name, value)
	case len("x-kt-xt"):
		if EqualFold(name, "x-kt-xt") {
			r.ktXt = value
		} else {
			r.mark(buf, name, value) // Referer
		}
	case len("x-kt-mode"):
		if EqualFold(name, "x-kt-mode") {
			r.ktMode = value
		}
	case len("connection"):
		if EqualFold(name, "connection") {
			r.connection(buf[value.from:value.to])
		} else {
			r.mark(buf, name, value) // User-Agent
		}
	case len("authorization"):
		switch {
		case EqualFold(name, "authorization"):
			r.authorization = value
		case EqualFold(name, "x-kt-replicas"):
			r.ktReplicas = value
		case EqualFold(name, "x-kt-position"):
			r.ktPosition = value
		case EqualFold(name, "last-event-id"):
			r.lastEvent = value
		}
	case len("content-type"):
		if EqualFold(name, "content-type") {
			r.contentType = value
		} else if EqualFold(name, "x-kt-max-lag") {
			r.ktMaxLag = value
		}
	case len("content-length"):
		if EqualFold(name, "content-length") {
			return r.length(buf[value.from:value.to])
		}
		r.mark(buf, name, value) // Sec-Fetch-Site, Sec-Fetch-Mode
	case len("transfer-encoding"):
		if EqualFold(name, "transfer-encoding") {
			r.chunked = EqualFold(buf[value.from:value.to], "chunked")
			r.Desynchronized = r.Desynchronized || !r.chunked // the original reads no body then
		}
	}
	return true
}

func (r *Request) connection(value []byte) {
	switch {
	case EqualFold(value, "close"):
		r.KeepAlive = false
	case EqualFold(value, "keep-alive"):
		r.KeepAlive = true
	}
}

// length reads a Content-Length. ok is false for a list of lengths, and for a length that differs
// from an earlier one.
func (r *Request) length(value []byte) (ok bool) {
	if bytes.IndexByte(value, ',') >= 0 {
		return false
	}
	n := lenient.Int(value)
	if n < 0 { // for the original there is no length
		r.Desynchronized = true
		n = -1
	}
	if r.contentLength >= 0 && n != r.contentLength {
		return false
	}
	r.contentLength = n
	return true
}

// mark notes a header by which browsers are recognised.
func (r *Request) mark(buf, name []byte, value span) {
	if f, ok := browser.FieldNamed(name); ok {
		r.marks[f], r.marked[f] = value, true
		r.FromBrowser = r.FromBrowser || f.Tells(buf[value.from:value.to])
	}
}

// EqualFold compares s with want, which is in lower case, in any case of ASCII letters.
func EqualFold(s []byte, want string) bool {
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
