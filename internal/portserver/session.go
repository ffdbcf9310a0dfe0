package portserver

import (
	"context"
	"net"
	"time"

	"gotycoon/internal/rescue"
)

// Session is one accepted connection. The server compares sessions, so they are pointers.
type Session interface {
	// Serve serves the connection until its end and closes it, in a goroutine of its own. It
	// catches the panics of its requests. ctx ends when the server stops accepting. Serve may
	// return before the end, if others go on with the connection: in any case ended is called when
	// the connection is closed.
	Serve(ctx context.Context, ended func())

	// Stop has Serve end soon: what is in execution is finished, and nothing more is begun. It may
	// be called more than once, also after the end of Serve.
	Stop()

	// Cut closes the connection whatever Serve is doing. It may be called more than once, also
	// after the end of Serve.
	Cut()
}

// Service serves one connection for a protocol that lets connections rest.
type Service interface {
	// Run serves requests until the connection rests or is over. If it rests, Run has passed it on
	// and touches nothing of it any more.
	Run() (rests bool)
	// End follows the last Run.
	End()
}

// call is the session of a protocol that is one function, or a Service.
type call struct {
	conn    net.Conn
	opts    *Options
	service Service
	ended   func()
}

// opener is a connection that must be opened before it is served, for example by a handshake. Open
// returns the connection to serve.
type opener interface{ Open() (net.Conn, error) }

// Serve implements Session.
func (c *call) Serve(ctx context.Context, ended func()) {
	c.ended = ended
	c.rescued(func() {
		ready := c.conn
		if o, ok := c.conn.(opener); ok {
			var err error
			if ready, err = o.Open(); err != nil {
				return
			}
		}
		if c.opts.Begin == nil {
			c.opts.Serve(ctx, ready)
			return
		}
		c.service = c.opts.Begin(ctx, ready, c.resume)
	})
	if c.service != nil {
		c.resume()
		return
	}
	c.close()
}

// resume serves the connection until it rests or is over.
func (c *call) resume() {
	rests := false
	c.rescued(func() { rests = c.service.Run() })
	if !rests {
		c.rescued(c.service.End)
		c.close()
	}
}

func (c *call) close() {
	defer c.ended()
	c.conn.Close()
}

// rescued calls f. A panic, which is logged, ends the connection.
func (c *call) rescued(f func()) { _ = rescue.Do(c.opts.Logger, "the connection is closed", f) }

// resting is a connection that rests: other goroutines may only cut it.
type resting interface{ Cut() }

// Stop implements Session: reads fail from now on. The connection may be closed already. Where it
// rests, the protocol stops it at the end of its context.
func (c *call) Stop() {
	if _, rests := c.conn.(resting); !rests {
		_ = c.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// Cut implements Session.
func (c *call) Cut() {
	if r, rests := c.conn.(resting); rests {
		r.Cut()
		return
	}
	c.conn.Close()
}
