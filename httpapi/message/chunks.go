package message

import (
	"bytes"

	"gotycoon/internal/netio"
)

// readChunks reads a body in chunks:
//
//	4;name=value CR LF   size in hexadecimal digits, and extensions, which are ignored
//	abcd CR LF
//	0 CR LF              a chunk of size 0 ends the body
//	CR LF
//
// Header and body are copied out of the connection's buffer. So this buffer needs room for one
// piece at a time, however small the chunks are.
func (r *Request) readChunks(c *netio.Conn) Fault {
	r.copied, r.held = r.copied[:0], 0
	if err := r.append(c, c.Buffered()[:r.Size]); err != nil {
		return FaultOf(err)
	}
	c.Advance(r.Size)
	r.Size = 0
	for {
		n, last, f := chunkSize(c)
		if f != NoFault {
			return f
		}
		if last {
			break
		}
		size := len(r.copied) - r.body.from + n
		if size > c.Largest(maxBody) {
			return TooLarge
		}
		if err := c.Declare(size); err != nil {
			return FaultOf(err)
		}
		if f := r.readChunk(c, n); f != NoFault {
			return f
		}
		if n == 0 {
			break
		}
	}
	r.buf = r.copied
	r.body.to = len(r.buf)
	return NoFault
}

// chunkSize reads the line with the size of a chunk. last reports an empty line, which ends the
// body.
func chunkSize(c *netio.Conn) (n int, last bool, f Fault) {
	var lines lineReader
	line, f := lines.next(c)
	switch {
	case f == Malformed:
		return 0, false, CutOff
	case f != NoFault:
		return 0, false, f
	case lines.cut:
		return 0, false, BadChunk
	}
	text := c.Buffered()[line.from:line.to]
	n, last = parseChunkSize(text), len(text) == 0
	c.Advance(lines.at)
	if n > maxBody {
		return 0, false, TooLarge
	}
	return n, last, NoFault
}

const crlf = "\r\n"

// readChunk reads n bytes and the line end behind them.
func (r *Request) readChunk(c *netio.Conn, n int) Fault {
	for n > 0 {
		if len(c.Buffered()) == 0 {
			if err := c.Fill(); err != nil {
				return FaultOf(err)
			}
		}
		piece := c.Buffered()
		piece = piece[:min(n, len(piece))]
		if err := r.append(c, piece); err != nil {
			return FaultOf(err)
		}
		c.Advance(len(piece))
		n -= len(piece)
	}
	for len(c.Buffered()) < len(crlf) {
		if c.Fill() != nil {
			return CutOff
		}
	}
	if !bytes.HasPrefix(c.Buffered(), []byte(crlf)) {
		return BadChunk
	}
	c.Advance(len(crlf))
	return NoFault
}

// append adds a piece to the copy. Each byte counts twice in the account of the connection, as the
// bytes of the connection's buffer do: once for the copy, and once for the record that is made of
// it.
func (r *Request) append(c *netio.Conn, piece []byte) error {
	before := r.held
	var err error
	if r.copied, err = c.Append(r.copied, &r.held, piece); err == nil {
		err = c.Hold(r.held - before)
	}
	return err
}

// parseChunkSize reads a hexadecimal number, "0x" allowed before it, and ignores what follows. A
// size over maxBody is returned as maxBody+1.
func parseChunkSize(text []byte) int {
	for len(text) > 0 && text[0] <= ' ' {
		text = text[1:]
	}
	if len(text) > 1 && text[0] == '0' && text[1]|0x20 == 'x' {
		text = text[2:]
	}
	n := 0
	for _, c := range text {
		digit, ok := hexValue(c)
		if !ok {
			break
		}
		n = min(n<<4|digit, maxBody+1)
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
