package httpapi

import "bytes"

// lineReader cuts the buffered bytes of a request into lines (3.2). Offsets count from the request's first byte.
type lineReader struct {
	next    int  // where the next line begins
	scanned int  // buf[next:scanned] has been looked at and has no line end
	chars   int  // characters in there, carriage returns not counted
	cut     bool // a line was too long and was cut
}

// take returns the next line without its end, or false when more bytes are needed. It drops carriage returns and
// what a NUL hides, by moving bytes inside buf.
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
	line = l.squeeze(buf)
	if nul := bytes.IndexByte(buf[line.from:line.to], 0); nul >= 0 {
		line.to = line.from + nul
	}
	return line, true
}

// squeeze takes the line that ends at scanned, or at the longest line there is, and moves on behind it.
func (l *lineReader) squeeze(buf []byte) span {
	line := span{l.next, l.next + min(l.chars, maxLine)}
	raw := buf[l.next:l.scanned]
	used := l.scanned + 1
	switch {
	case l.chars >= maxLine:
		l.cut = true
		used = l.next + dropReturns(raw)
	case l.chars == len(raw): // no carriage return
	case l.chars == len(raw)-1 && raw[len(raw)-1] == '\r': // only where it belongs
	default:
		dropReturns(raw)
	}
	l.next, l.scanned, l.chars = used, used, 0
	return line
}

// dropReturns moves the bytes of raw that are no carriage returns together, up to the longest line there is, and
// returns how many bytes it has looked at.
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
