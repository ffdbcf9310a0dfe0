package admin

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// connections limits how many connections the listener has: each takes a file and memory, which
// clients of the data shall not lack.
//
// When the places are full, a new connection takes the place of one that no handler serves, so that
// whoever keeps connections open, or sends heads drop by drop, cannot lock probes and scrapes out.
// The address that has most connections gives one up, the one that has waited for the longest time;
// its client connects again if it lives. A new connection is refused only when handlers serve all.
type connections struct {
	most int
	log  *slog.Logger

	mu     sync.Mutex // protects the fields below
	open   map[net.Conn]*connection
	closed int       // by the limit, since told
	told   time.Time // of the latest line
}

// connection is what is known of an open connection.
type connection struct {
	from   string    // the client's IP address
	since  time.Time // when it was accepted, or its latest request was answered
	served bool      // by a handler
}

// note hears of each connection that begins or ends, see http.Server.ConnState.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if c.most > 0 && len(c.open) >= c.most && !c.giveUp() {
			c.end(conn)
			return
		}
		c.open[conn] = &connection{from: hostOf(conn), since: time.Now()}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// serve notes that a handler serves a connection, until done is called.
func (c *connections) serve(conn net.Conn) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.open[conn]
	if one == nil { // it has just been closed
		return func() {}
	}
	one.served = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		one.served, one.since = false, time.Now()
	}
}

// giveUp closes a connection that no handler serves, and reports whether there was one. mu is held.
func (c *connections) giveUp() bool {
	has := map[string]int{}
	for _, one := range c.open {
		has[one.from]++
	}
	var victim net.Conn
	for conn, one := range c.open {
		if one.served {
			continue
		}
		if v := c.open[victim]; v == nil || has[one.from] > has[v.from] || has[one.from] == has[v.from] && one.since.Before(v.since) {
			victim = conn
		}
	}
	if victim == nil {
		return false
	}
	delete(c.open, victim)
	c.end(victim)
	return true
}

// end closes a connection that is too many, and says so once a second. mu is held.
func (c *connections) end(conn net.Conn) {
	// The end of TLS would be sent to a client that may not read.
	if secure, ok := conn.(interface{ TCP() *net.TCPConn }); ok {
		conn = secure.TCP()
	}
	_ = conn.Close() // the server notices at the next read
	c.closed++
	if now := time.Now(); now.Sub(c.told) >= time.Second {
		c.log.Error(fmt.Sprintf("too many connections to the admin listener: limit=%d closed=%d", c.most, c.closed))
		c.told, c.closed = now, 0
	}
}

// hostOf returns the IP address of a client.
func hostOf(conn net.Conn) string {
	text := conn.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host
	}
	return text
}
