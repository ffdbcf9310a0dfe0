package server

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gotycoon/access"
	"gotycoon/binproto"
	"gotycoon/client/wire/frame"
	"gotycoon/httpapi"
	"gotycoon/internal/browser"
	"gotycoon/internal/member"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/internal/rescue"
	"gotycoon/internal/tlsport"
)

const (
	lingerTime  = 500 * time.Millisecond // how long a client may go on sending after the last reply
	lingerBytes = 1 << 20                // and how much
	stopGrace   = time.Second            // for the rest of a half received request at a stop
)

// door is what the connections of the data port share between one listen and the next stop.
type door struct {
	http    *httpapi.Handler
	bin     *binproto.Handler
	pool    *sync.Pool
	limits  *netio.Limits
	loops   *netio.Loops // nil: each connection has a goroutine
	access  *access.Guard
	members *members
	meter   *metrics.Meter
	traffic *traffic
	log     logger
}

// traffic counts connections and notices requests, across restarts of the port.
type traffic struct {
	open   atomic.Int64
	all    atomic.Uint64
	active atomic.Bool // there has been a request since somebody last asked
}

// connections returns the number of open connections, and of all so far.
func (t *traffic) connections() (open int, all uint64) { return int(t.open.Load()), t.all.Load() }

// idle reports whether there has been no request since the last call.
func (t *traffic) idle() bool { return !t.active.Swap(false) }

// note notes a request. It looks first: all connections share the mark, and a write would take it
// away from their processors.
func (t *traffic) note() {
	if !t.active.Load() {
		t.active.Store(true)
	}
}

// wire is a connection as the protocols see it: the bare socket, or TLS.
type wire interface {
	net.Conn
	CloseWrite() error
}

// socket is a connection of the network: of package net, or one that rests in a loop.
type socket interface {
	wire
	syscall.Conn
}

// conn is one client connection. It implements portserver.Session.
type conn struct {
	door    *door
	socket  socket // below wire
	wire    wire
	peer    string // IP:PORT of the client
	io      *netio.Conn
	session *httpapi.Session
	busy    atomic.Bool   // a request is being served
	follows atomic.Bool   // the request being served is one to follow the update log
	ended   chan struct{} // closed after the last line of the log
	broken  string        // what is logged with a panic
	lingers bool          // nothing is served any more
	close   func()        // tells the port that the connection is closed

	mu    sync.Mutex // protects given, and wire and socket where they change
	given bool       // the socket has another owner
}

// newConn makes the connection of an accepted socket, or of TLS above it.
func (d *door) newConn(accepted net.Conn) *conn {
	c := &conn{door: d, wire: accepted.(wire), peer: accepted.RemoteAddr().String(), ended: make(chan struct{})}
	switch a := accepted.(type) {
	case socket:
		c.socket = a
	case *tlsport.Conn:
		c.socket = a.TCP()
	}
	c.io = netio.New(c.wire, d.pool, netio.Options{Limits: d.limits, Access: d.access, Loops: d.loops})
	c.session = d.http.NewSession(c.io, c.peer)
	c.io.Meter = d.meter.NewRecorder(c.peer)
	c.broken = "the connection is closed: expr=" + c.peer
	d.traffic.open.Add(1)
	d.traffic.all.Add(1)
	return c
}

// Serve implements portserver.Session.
func (c *conn) Serve(stopping context.Context, ended func()) {
	c.door.log.info("connected: expr=%s", c.peer)
	c.io.Ending, c.close = stopping, ended
	if !c.shakeHands() {
		c.end(false)
		return
	}
	c.io.RestIn(c.resume)
	c.resume()
}

// resume serves the connection until it rests or ends.
func (c *conn) resume() {
	if c.lingers {
		c.shut()
		return
	}
	if finished, rests := c.serve(); !rests {
		c.end(finished)
	}
}

// end closes the connection. If finished is set, the client may still be reading the last reply.
func (c *conn) end(finished bool) {
	log := c.door.log
	c.session.Close()
	c.io.Close()
	c.door.traffic.open.Add(-1)
	log.info("disconnecting: expr=%s", c.peer)
	close(c.ended)
	if c.isGiven() {
		c.close()
		return
	}
	c.lingers = finished
	c.shut()
}

// shut closes the socket, when the client has had time to read the last reply.
func (c *conn) shut() {
	if c.lingers && c.linger() {
		return // it rests
	}
	c.wire.Close()
	c.close()
}

// shakeHands does the handshake of a connection to a port that speaks TLS. It reports whether the
// connection can be served.
func (c *conn) shakeHands() bool {
	secure, ok := c.wire.(*tlsport.Conn)
	if !ok {
		return true
	}
	opened, err := secure.Open()
	if err != nil {
		return false
	}
	if bare, ok := opened.(*net.TCPConn); ok { // the client speaks plaintext, which is allowed
		c.wire = bare
		c.io.Replace(bare)
	}
	return true
}

// serve serves one request after the other. It reports whether it ended with a reply, after which
// the server closes, and whether the connection has not ended, but rests. A panic ends the
// connection without a reply.
func (c *conn) serve() (finished, rests bool) {
	err := rescue.Do(c.door.log.Logger, c.broken, func() {
		for {
			if err := c.io.WaitByte(); err != nil {
				rests = errors.Is(err, netio.ErrRests)
				return
			}
			c.door.traffic.note()
			c.busy.Store(true)
			keep := c.serveOne()
			c.busy.Store(false)
			if !keep {
				finished = c.io.Flush() == nil
				return
			}
		}
	})
	if err != nil {
		c.busy.Store(false)
	}
	return finished, rests
}

// serveOne decides by the first byte which protocol the next request speaks. It reports whether the
// connection stays.
func (c *conn) serveOne() bool {
	if first := c.io.Buffered()[0]; first == 0 || first >= 0x80 {
		if binproto.IsFollow(first) {
			c.follows.Store(true)
			netio.LimitSilence(c.socket, deadPeer)
		}
		if frame.Magic(first) == frame.Member {
			return c.settle() && c.serveMember()
		}
		return c.door.bin.ServeOne(c.io, c.peer)
	}
	if head := c.io.Buffered(); browser.IsHello(head) {
		_, line := browser.Misled(head, "HTTP and the binary protocol")
		c.door.log.info("(%s): %s", c.peer, line)
		return false
	}
	return c.session.ServeOne()
}

// settle makes the connection one of package net, which may have another owner.
func (c *conn) settle() bool {
	bare, ok := c.wire.(*netio.Bare)
	if !ok {
		return true
	}
	if c.io.Settle() != nil {
		return false
	}
	tcp, err := bare.TCP()
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wire, c.socket = tcp, tcp
	return true
}

// serveMember lets another member in, whose first byte has come. The connection goes on as one of a
// client of the data port, and then serveMember reports true, or has another owner.
func (c *conn) serveMember() (keep bool) {
	m := c.door.members
	r, err := m.admit(c.io, c.wire)
	switch {
	case err != nil:
		return false
	case r.Kind == frame.MemberReplica:
		c.io.Member, c.io.Visitor = true, nil // who has proved to be a member may do everything
		return true
	case r.Kind == frame.MemberData:
		c.actFor(*r.Client)
		return true
	case c.give() && !m.hand(r, c.wire):
		c.door.log.error("%s connection of %s for %s: too many connections, or the port stops", r.Kind, c.peer, r.Client.Address)
		c.wire.Close()
	}
	return false
}

// actFor makes the connection one of a client of another member.
func (c *conn) actFor(client access.Client) {
	c.door.log.info("forwarded: expr=%s client=%s", c.peer, client.Address)
	c.session.Close()
	c.wire = member.Behalf(c.wire, client).(wire)
	c.peer = c.wire.RemoteAddr().String()
	c.io.Replace(c.wire)
	c.session = c.door.http.NewSession(c.io, c.peer)
	c.io.Meter = c.door.meter.NewRecorder(c.peer)
}

// linger lets the client read the last reply: closing a socket with unread bytes would destroy it.
// It does not wait once the port stops, because its deadline has replaced the one that Stop has
// set.
func (c *conn) linger() (rests bool) {
	if rests, ok := c.io.Linger(lingerTime, lingerBytes); ok {
		return rests
	}
	c.io.Leave()
	if c.wire.CloseWrite() != nil || c.socket.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return false
	}
	if c.io.Ending.Err() == nil {
		_, _ = io.CopyN(io.Discard, c.socket, lingerBytes)
	}
	return false
}

// Stop implements portserver.Session: the request being served is finished, and further bytes of a
// half received request have the grace.
func (c *conn) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.given && c.io.Stop(stopGrace) != nil {
		c.cut()
	}
}

// Cut implements portserver.Session.
func (c *conn) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.given {
		c.cut()
	}
}

// cut ends the socket. The caller holds mu.
func (c *conn) cut() {
	if bare, ok := c.socket.(*netio.Bare); ok {
		bare.Cut()
		return
	}
	c.socket.Close()
}

// give ends the port's hold of the socket, which another owner takes. It reports whether the socket
// can be given: not if the port has begun to end the connection.
func (c *conn) give() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given = !c.io.Stopping() && c.wire.SetDeadline(time.Time{}) == nil
	return c.given
}

// isGiven reports whether the socket has another owner.
func (c *conn) isGiven() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.given
}

// cutFollower ends the connection of a follower: it can take its updates after the stop as well.
func (c *conn) cutFollower() {
	if c.follows.Load() {
		c.Cut()
	}
}
