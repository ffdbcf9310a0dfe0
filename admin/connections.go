package admin

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// connections counts the connections of the listener, and closes those that are too many: each
// takes a file and memory, which clients of the data shall not lack.
type connections struct {
	most int
	log  *slog.Logger

	mu      sync.Mutex // protects the fields below
	open    map[net.Conn]struct{}
	refused int       // since told
	told    time.Time // of the latest line
}

// note hears of each connection that begins or ends, see http.Server.ConnState.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if c.most > 0 && len(c.open) >= c.most {
			c.refuse()
			_ = conn.Close() // the server notices at the first read
			return
		}
		c.open[conn] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// refuse counts a connection that is too many, and says so once a second. mu is held.
func (c *connections) refuse() {
	c.refused++
	if now := time.Now(); now.Sub(c.told) >= time.Second {
		c.log.Error(fmt.Sprintf("too many connections to the admin listener: limit=%d refused=%d", c.most, c.refused))
		c.told, c.refused = now, 0
	}
}
