package netio

import "sync"

const (
	readSize   = 16 << 10 // size of a fresh read buffer
	keepSize   = 64 << 10 // larger buffers are not kept for the next request
	growFactor = 2
)

// buffers is what a connection needs while it is not idle.
type buffers struct{ in, out []byte }

// NewPool returns the pool from which the connections of one server take their buffers.
func NewPool() *sync.Pool {
	return &sync.Pool{New: func() any { return &buffers{in: make([]byte, readSize)} }}
}

func (c *Conn) takeBuffers() {
	if c.bufs == nil {
		c.bufs = c.pool.Get().(*buffers)
		c.Out = c.bufs.out
	}
}

// parkBuffers gives the buffers to whoever needs some next. Nothing may be buffered or unsent.
func (c *Conn) parkBuffers() {
	b := c.bufs
	if b == nil {
		return
	}
	if len(b.in) > keepSize {
		c.letGo(c.held - int64(len(b.in)))
		b.in = make([]byte, readSize)
	}
	b.out = c.Out[:0]
	if cap(b.out) > keepSize {
		b.out = nil
	}
	c.bufs, c.Out = nil, nil
	c.pool.Put(b)
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
		return c.grow(growFactor * size)
	}
	return nil
}

// grow makes the read buffer larger.
func (c *Conn) grow(size int) error {
	if size > keepSize {
		if err := c.Hold(size - int(c.largeBuffer())); err != nil {
			return err
		}
	}
	c.moveUnread(make([]byte, size))
	return nil
}

// largeBuffer is what the read buffer counts in Limits.held.
func (c *Conn) largeBuffer() int64 {
	if c.bufs == nil || len(c.bufs.in) <= keepSize {
		return 0
	}
	return int64(len(c.bufs.in))
}

// moveUnread puts the unread bytes at the beginning of in, which becomes the read buffer.
func (c *Conn) moveUnread(in []byte) {
	c.w = copy(in, c.bufs.in[c.r:c.w])
	c.r = 0
	c.bufs.in = in
}
