package httpapi

import "bytes"

// readChunks reads a body in chunks (3.4). Request and body are copied out of the connection's buffer, which then
// needs room for one piece at a time, however small the chunks are.
func (s *Session) readChunks() fault {
	r := &s.req
	r.copied, r.held = r.copied[:0], 0
	if err := s.appendChunk(s.c.Buffered()[:r.size]); err != nil {
		return faultOf(err)
	}
	s.c.Advance(r.size)
	r.size = 0
	for {
		n, last, f := s.chunkSize()
		if f != faultNone {
			return f
		}
		if last {
			break
		}
		size := len(r.copied) - r.body.from + n
		if size > s.c.Largest(maxBody) {
			return faultTooLarge
		}
		if err := s.c.Declare(size); err != nil {
			return faultOf(err)
		}
		if f := s.readChunk(n); f != faultNone {
			return f
		}
		if n == 0 {
			break
		}
	}
	r.buf = r.copied
	r.body.to = len(r.buf)
	return faultNone
}

// chunkSize reads the line with the size of a chunk. An empty line ends the body.
func (s *Session) chunkSize() (n int, last bool, f fault) {
	var lines lineReader
	line, f := s.nextLine(&lines)
	switch {
	case f == faultMalformed:
		return 0, false, faultCutOff
	case f != faultNone:
		return 0, false, f
	case lines.cut:
		return 0, false, faultChunk
	}
	text := s.c.Buffered()[line.from:line.to]
	n, last = parseChunkSize(text), len(text) == 0
	s.c.Advance(lines.next)
	if n > maxBody {
		return 0, false, faultTooLarge
	}
	return n, last, faultNone
}

// readChunk reads n bytes and the line end behind them.
func (s *Session) readChunk(n int) fault {
	for n > 0 {
		if len(s.c.Buffered()) == 0 {
			if err := s.c.Fill(); err != nil {
				return faultOf(err)
			}
		}
		piece := s.c.Buffered()
		piece = piece[:min(n, len(piece))]
		if err := s.appendChunk(piece); err != nil {
			return faultOf(err)
		}
		s.c.Advance(len(piece))
		n -= len(piece)
	}
	for len(s.c.Buffered()) < len(crlf) {
		if s.c.Fill() != nil {
			return faultCutOff
		}
	}
	if !bytes.HasPrefix(s.c.Buffered(), []byte(crlf)) {
		return faultChunk
	}
	s.c.Advance(len(crlf))
	return faultNone
}

// appendChunk adds a piece of the body to what is kept. Each byte counts twice, as those of the connection's buffer do.
func (s *Session) appendChunk(piece []byte) error {
	r := &s.req
	before := r.held
	var err error
	if r.copied, err = s.c.Append(r.copied, &r.held, piece); err == nil {
		err = s.c.Hold(r.held - before)
	}
	return err
}

const crlf = "\r\n"

// parseChunkSize reads a hexadecimal number, "0x" allowed before it, and ignores what follows. Sizes over maxBody
// are not told apart.
func parseChunkSize(text []byte) int {
	for len(text) > 0 && text[0] <= ' ' {
		text = text[1:]
	}
	if len(text) > 1 && text[0] == '0' && text[1]|0x20 == 'x' {
		text = text[2:]
	}
	n := 0
	for _, c := range text {
		d, ok := hexValue(c)
		if !ok {
			break
		}
		n = min(n<<4|d, maxBody+1)
	}
	return n
}

func hexValue(c byte) (int, bool) {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0'), true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10, true
	}
	return 0, false
}
