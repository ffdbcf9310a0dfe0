package netio

import (
	"net"
	"time"

	"gotycoon/access"
)

// Client describes the client of the connection for another server of the cluster.
func (c *Conn) Client() access.Client { return access.ClientOf(c.net) }

// Forwarded reports whether another server of the cluster has opened the connection for its client.
func (c *Conn) Forwarded() bool {
	_, ok := c.net.(access.Forwarded)
	return ok
}

// Detach ends the service of the connection by protocols: it has send take the bytes that were read
// and not yet used, gives the buffers back, and returns the network connection, whose further bytes
// the caller moves. Replies must have been sent. After Detach only Stop, Cut, Flush and Close may
// be called; Stop ends the reads of the network connection, as before.
func (c *Conn) Detach(send func(unread []byte) error) (net.Conn, error) {
	if err := c.Settle(); err != nil {
		return nil, err
	}
	err := send(c.Buffered())
	c.Meter.Idle()
	c.endServing()
	c.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = false
	if err == nil && c.stopBy.IsZero() {
		err = c.net.SetDeadline(time.Time{})
	}
	return c.net, err
}
