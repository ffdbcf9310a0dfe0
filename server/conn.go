package server

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"gotycoon/binproto"
	"gotycoon/httpapi"
	"gotycoon/internal/netio"
	"gotycoon/internal/rescue"
)

const (
	lingerTime  = 500 * time.Millisecond // how long a client may go on sending after the last reply
	lingerBytes = 1 << 20                // and how much
)

// conn is one client connection.
type conn struct {
	l       *listener
	socket  *net.TCPConn // below wire
	wire    wire
	peer    string // IP:PORT of the client
	io      *netio.Conn
	session *httpapi.Session
	busy    atomic.Bool   // a request is being served
	follows atomic.Bool   // the request being served is one to follow the update log
	ended   chan struct{} // closed after the last line of the log
}

// newConn makes an accepted connection known to the listener.
func (l *listener) newConn(socket *net.TCPConn, plain bool) *conn {
	c := &conn{l: l, socket: socket, wire: l.newWire(socket, plain), peer: socket.RemoteAddr().String(), ended: make(chan struct{})}
	c.io = netio.New(c.wire, l.pool, netio.Options{Limits: &l.tuned.limits, Access: l.access})
	c.session = l.http.NewSession(c.io, c.peer)
	c.io.Meter = l.admin.meter.NewRecorder(c.peer)
	l.conns.Add(1)
	l.allConns.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = struct{}{}
	return c
}

// run serves the connection to its end.
func (c *conn) run() {
	c.l.log.info("connected: expr=%s", c.peer)
	finished := c.open() && c.serve()
	c.session.Close()
	c.io.Close()
	c.l.conns.Add(-1)
	c.l.log.info("disconnecting: expr=%s", c.peer)
	close(c.ended)
	if finished {
		c.linger()
	}
	c.wire.Close()
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	delete(c.l.open, c)
}

// serve serves one request after the other. It reports whether it ended with a reply, after which the server closes.
func (c *conn) serve() (finished bool) {
	if rescue.Do(c.l.log.Logger, "the connection is closed: expr="+c.peer, func() { finished = c.serveAll() }) != nil {
		c.busy.Store(false)
		return false
	}
	return finished
}

// serveAll is serve for requests that do not panic.
func (c *conn) serveAll() (finished bool) {
	for c.io.WaitByte() == nil {
		if !c.l.active.Load() { // look first: all connections share it
			c.l.active.Store(true)
		}
		c.busy.Store(true)
		keep := c.serveOne()
		c.busy.Store(false)
		if !keep {
			return c.io.Flush() == nil
		}
	}
	return false
}

// serveOne decides by the first byte which protocol the next request speaks. It reports whether the connection stays.
func (c *conn) serveOne() bool {
	if first := c.io.Buffered()[0]; first == 0 || first >= 0x80 {
		if binproto.IsFollow(first) {
			c.follows.Store(true)
			c.limitSilence()
		}
		return c.l.bin.ServeOne(c.io, c.peer)
	}
	return c.session.ServeOne()
}

// linger lets the client read the last reply: closing a socket with unread bytes would destroy it.
func (c *conn) linger() {
	if c.wire.CloseWrite() != nil || c.socket.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	select {
	case <-c.l.stopping: // stop has set its deadline before this one
	default:
		_, _ = io.CopyN(io.Discard, c.socket, lingerBytes)
	}
}

// stop ends the connection after the request being served; more bytes of a half received one have the grace.
func (c *conn) stop(grace time.Duration) {
	if c.io.Stop(grace) != nil {
		c.cut()
	}
}

// cut ends the connection whatever it is doing.
func (c *conn) cut() { c.socket.Close() }

// cutFollower ends the connection of a follower: it can take its updates after the stop as well.
func (c *conn) cutFollower() {
	if c.follows.Load() {
		c.cut()
	}
}
