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
	stepFactor = 16      // a buffer grows so much at once where the size is declared
	firstStep  = 1 << 20 // and to this at least
	lastStep   = 4       // unless it is to become less than four times as large

	bytesCounted = 2 // how often a byte of a large request counts
)

// margin is what there is in front of a large read buffer and behind it, so that a large value can be stored from where it is, see Room.
const margin = 16

// buffers is what a connection needs while it is not idle.
type buffers struct {
	in, out []byte
	whole   []byte // in with its margins; nil: it has none
}

// NewPool returns the pool from which the connections of one server take their buffers.
func NewPool() *sync.Pool {
	return &sync.Pool{New: func() any { return &buffers{in: make([]byte, readSize)} }}
}

func (c *Conn) takeBuffers() {
	if c.bufs == nil {
		c.bufs = c.pool.Get().(*buffers)
		c.Out = c.bufs.out
		c.force(c.inputCost()) // it is there already: to refuse it would save nothing
	}
}

// parkBuffers gives the buffers to whoever needs some next. Nothing may be buffered or unsent.
func (c *Conn) parkBuffers() {
	b := c.bufs
	if b == nil {
		return
	}
	c.letGo(c.held - c.inputCost())
	if len(b.in) > keepSize {
		b.in, b.whole = make([]byte, readSize), nil
	}
	b.out = c.Out[:0]
	if cap(b.out) > keepSize {
		b.out = nil
	}
	c.bufs, c.Out = nil, nil
	c.pool.Put(b)
}

// shrink gives a large read buffer back as soon as its request is served, and the room of a large reply as soon as it is sent, also
// where the next request has begun to arrive.
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

// nextSize is the size of the read buffer when it grows. Where the rest of a request has a declared size the buffer becomes that large
// in few steps, each when a sixteenth of it has come: hardly a byte is copied twice, and a client that declares much and sends little
// makes the server hold little.
func (c *Conn) nextSize(size int) int {
	if step := max(stepFactor*size, firstStep); c.want > lastStep*step {
		return step
	} else if c.want > size {
		return c.want
	}
	return growFactor * size
}

// grow makes the read buffer larger. While the bytes are being copied there are two buffers: the half of the cost that is for what will
// be made of the bytes is not used yet.
func (c *Conn) grow(size int) error {
	if err := c.Hold(int(costOf(size) - c.inputCost())); err != nil {
		return err
	}
	whole := make([]byte, margin+size+margin)
	c.moveUnread(whole[margin : margin+size])
	c.bufs.whole = whole
	return nil
}

// Room returns the first n buffered bytes of a large read buffer with some of those in front and behind, which the caller may overwrite. The
// ones in front are of what has been used, or of nobody; the ones behind may be the beginning of the next request, and have to be put back.
// It returns nil for a small buffer, and where more is asked for than there is.
func (c *Conn) Room(n, before, after int) []byte {
	if c.bufs == nil || c.bufs.whole == nil || max(before, after) > margin {
		return nil
	}
	at := margin + c.r
	return c.bufs.whole[at-before : at+n+after]
}

// inputCost is what the read buffer counts in the account.
func (c *Conn) inputCost() int64 {
	if c.bufs == nil {
		return 0
	}
	return costOf(len(c.bufs.in))
}

// costOf is what a read buffer of a size counts: what it has more than any connection needs. Each byte of a large one counts twice: once
// in the buffer, and once in what is made of it, the record in memory.
func costOf(size int) int64 {
	if size <= keepSize {
		return int64(max(size-readSize, 0))
	}
	return bytesCounted * int64(size)
}

// moveUnread puts the unread bytes at the beginning of in, which becomes the read buffer.
func (c *Conn) moveUnread(in []byte) {
	c.w = pieces.Copy(in, c.bufs.in[c.r:c.w])
	c.r = 0
	c.bufs.in = in
}
