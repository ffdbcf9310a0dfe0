package netio

import (
	"sync"

	"gotycoon/internal/pieces"
)

const (
	readSize   = 16 << 10 // size of a fresh read buffer
	keepSize   = 64 << 10 // larger buffers are not kept for the next request
	keepOut    = 1 << 20  // larger room for replies is not kept for the next pipelined request
	growFactor = 2

	// A buffer for a declared size grows in steps, see nextSize.
	stepFactor = 16      // by this factor
	firstStep  = 1 << 20 // and at least to this size
	lastStep   = 4       // but at once to the declared size if that is at most four steps

	bytesCounted = 2 // how often a byte of a large request counts
)

// margin is how many bytes there are in front of a large read buffer and behind it, so that a large
// value can be stored without being moved, see Room.
const margin = 16

// buffers are the buffers of a connection that is not idle.
type buffers struct {
	in, out []byte
	whole   []byte // in and the margins around it; nil: in has no margins
}

// NewPool returns the pool from which the connections of one server take their buffers.
func NewPool() *sync.Pool {
	return &sync.Pool{New: func() any { return &buffers{in: make([]byte, readSize)} }}
}

// shrink drops a large read buffer when its request is served, and the room of a large reply when
// it is sent, even if the next request has begun to arrive.
func (c *Conn) shrink() {
	if c.bufs == nil {
		return
	}
	if cap(c.Out) > keepOut && len(c.Out) == 0 {
		c.Out = nil
	}
	if len(c.bufs.in) > keepSize && c.w-c.r <= readSize {
		c.moveUnread(make([]byte, readSize))
		c.bufs.whole = nil
	}
}

// makeRoom makes sure that at least one byte can be read into the read buffer.
func (c *Conn) makeRoom() error {
	c.takeBuffers()
	size := len(c.bufs.in)
	switch {
	case c.r == c.w:
		c.r, c.w = 0, 0
	case c.w < size:
	case c.r >= size/growFactor:
		c.moveUnread(c.bufs.in)
	case c.w-c.r >= c.Largest(c.opts.MaxRequest):
		return ErrTooLarge
	default:
		return c.grow(c.nextSize(size))
	}
	return nil
}

// nextSize returns the size to which the read buffer grows. For a request of a declared size the
// buffer grows in few steps: it is enlarged to the next size when a sixteenth of that size has
// come. So hardly a byte is copied twice, and a client that declares much and sends little makes
// the server hold little.
func (c *Conn) nextSize(size int) int {
	if step := max(stepFactor*size, firstStep); c.want > lastStep*step {
		return step
	} else if c.want > size {
		return c.want
	}
	return growFactor * size
}

// grow makes the read buffer larger. While the bytes are copied both the old and the new buffer
// exist. The account has room for both, because half of what the new buffer counts is for the
// record that will be made of its bytes later.
func (c *Conn) grow(size int) error {
	if err := c.Hold(int(costOf(size) - c.inputCost())); err != nil {
		return err
	}
	whole := make([]byte, margin+size+margin)
	c.moveUnread(whole[margin : margin+size])
	c.bufs.whole = whole
	return nil
}

// Room returns the first n buffered bytes of a large read buffer, with before bytes in front of
// them and after bytes behind them, all of which the caller may overwrite. The bytes in front have
// been used already. The bytes behind may be the beginning of the next request: the caller has to
// restore them. Room returns nil for a small buffer, and if before or after is more than margin.
func (c *Conn) Room(n, before, after int) []byte {
	if c.bufs == nil || c.bufs.whole == nil || max(before, after) > margin {
		return nil
	}
	at := margin + c.r
	return c.bufs.whole[at-before : at+n+after]
}

// inputCost returns how many bytes the read buffer counts in the account.
func (c *Conn) inputCost() int64 {
	if c.bufs == nil {
		return 0
	}
	return costOf(len(c.bufs.in))
}

// costOf returns how many bytes a read buffer of a size counts in the account. The first 16 KiB,
// which every connection needs, do not count. Each byte of a large buffer counts twice: in the
// buffer, and in the record in memory that is made of it.
func costOf(size int) int64 {
	if size <= keepSize {
		return int64(max(size-readSize, 0))
	}
	return bytesCounted * int64(size)
}

// moveUnread copies the unread bytes to the beginning of in, and makes in the read buffer.
func (c *Conn) moveUnread(in []byte) {
	c.w = pieces.Copy(in, c.bufs.in[c.r:c.w])
	c.r = 0
	c.bufs.in = in
}
