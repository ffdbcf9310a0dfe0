package portserver

import (
	"context"
	"log/slog"
	"net"
	"time"

	"gotycoon/internal/rescue"
)

// Session is one accepted connection. The server compares sessions, so they are pointers.
type Session interface {
	// Serve serves the connection until its end and closes it, in a goroutine of its own. It
	// catches the panics of its requests. ctx ends when the server stops accepting.
	Serve(ctx context.Context)

	// Stop has Serve end soon: what is in execution is finished, and nothing more is begun. It may
	// be called more than once, also after the end of Serve.
	Stop()

	// Cut closes the connection whatever Serve is doing. It may be called more than once, also
	// after the end of Serve.
	Cut()
}

// call is the session of a protocol that is one function.
type call struct {
	conn  net.Conn
	serve func(ctx context.Context, c net.Conn)
	log   *slog.Logger
}

// opener is a connection that must be opened before it is served, for example by a handshake. Open
// returns the connection to serve.
type opener interface{ Open() (net.Conn, error) }

// Serve implements Session.
func (c *call) Serve(ctx context.Context) {
	_ = rescue.Do(c.log, "the connection is closed", func() { // rescue.Do logs a panic
		ready := c.conn
		if o, ok := c.conn.(opener); ok {
			var err error
			if ready, err = o.Open(); err != nil {
				return
			}
		}
		c.serve(ctx, ready)
	})
	c.conn.Close()
}

// Stop implements Session: reads fail from now on. The connection may be closed already.
func (c *call) Stop() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) }

// Cut implements Session.
func (c *call) Cut() { c.conn.Close() }
