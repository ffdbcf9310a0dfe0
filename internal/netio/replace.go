package netio

import "net"

// waiter is a connection that can wait for bytes without a buffer to put them in, as a plain socket can.
type waiter interface{ Wait() error }

// Replace makes n the connection whose bytes are used, another form of the same one: a port with TLS does not know what a client speaks
// when it is accepted. Nothing may have been read or written.
func (c *Conn) Replace(n net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.net = n
	c.raw = newRawSocket(c)
	c.wait, _ = n.(waiter)
	c.Visitor = c.opts.Access.Visit(n)
}
