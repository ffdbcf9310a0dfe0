// Package client talks to a gotycoon or Kyoto Tycoon server.
//
//	c := client.New("localhost:1978", client.Options{})
//	defer c.Close()
//	db := c.DB("")
//	err := db.Set(ctx, "japan", []byte("tokyo"), client.In(time.Hour))
//	value, err := db.Get(ctx, "japan")
//	for record, err := range db.All(ctx) { … }
//
// A Client keeps connections and may be used by many goroutines. A Cursor has a connection of its own and belongs to one
// goroutine. The context of a call limits its time. Errors are *Error; test for ErrNoRecord, ErrDuplicate and ErrConflict
// with errors.Is. No call is sent twice: after an error of the network nobody knows whether an update was done.
package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// DefaultPort is the port of a server that was not told another.
const DefaultPort = "1978"

// Options of a Client. The zero value is usable.
type Options struct {
	Timeout time.Duration // limit of one call whose context has none, and of one message in Follow; 0 means none
	MaxIdle int           // connections kept for later calls; 0 means 64
	TLS     *tls.Config   // speak TLS; nil means plaintext. An empty ServerName means the host of the address

	// Dial makes the connections of a client for the databases, which are ready for use then: TLS does not apply. nil means plain TCP, or
	// what TLS says.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Credentials are sent with every call over HTTP. The binary protocol has none: SetBinary, Follow and Copy, for example, depend
	// on where the client is.
	Credentials
}

// Client talks to one server.
type Client struct {
	addr string
	opts Options

	mu     sync.Mutex // guards the fields below
	idle   []*conn
	closed bool
}

var errClosed = errors.New("the client is closed")

// New returns a client of the server at addr, HOST:PORT or HOST. It connects with the first call.
func New(addr string, o Options) *Client {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		addr = net.JoinHostPort(addr, DefaultPort)
	}
	if o.MaxIdle == 0 {
		o.MaxIdle = 64
	}
	return &Client{addr: addr, opts: o}
}

// DB returns a database of the server by its name or number; "" is the first.
func (c *Client) DB(name string) *DB { return &DB{client: c, name: name} }

// Connect makes sure that the server can be reached.
func (c *Client) Connect(ctx context.Context) error {
	return c.with(ctx, func(*conn) error { return nil })
}

// Close closes the connections that no call uses. Calls fail from now on.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var all error
	for _, cn := range c.idle {
		all = errors.Join(all, cn.Close())
	}
	c.idle = nil
	return all
}

// take returns an idle connection or a new one.
func (c *Client) take(ctx context.Context) (*conn, error) {
	for {
		cn, err := c.takeIdle()
		if err != nil {
			return nil, networkError(err)
		}
		if cn == nil {
			return c.dial(ctx)
		}
		if alive(cn.Conn) {
			return cn, nil
		}
		_ = cn.Close() // the server was restarted, for example
	}
}

// takeIdle returns the connection used last, nil when there is none.
func (c *Client) takeIdle() (*conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	n := len(c.idle)
	if n == 0 {
		return nil, nil
	}
	cn := c.idle[n-1]
	c.idle = c.idle[:n-1]
	return cn, nil
}

// give keeps a connection for later, unless there are enough.
func (c *Client) give(cn *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.idle) >= c.opts.MaxIdle {
		_ = cn.Close()
		return
	}
	cn.rest()
	c.idle = append(c.idle, cn)
}

// with runs f on a connection, which is kept when it can be used further.
func (c *Client) with(ctx context.Context, f func(*conn) error) error {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	cn, err := c.take(ctx)
	if err != nil {
		return err
	}
	err = cn.during(ctx, f)
	if cn.broken || cn.in.Buffered() > 0 { // what nobody asked for would pass as the next reply
		_ = cn.Close()
		return err
	}
	c.give(cn)
	return err
}

// limit gives a context without a deadline that of the options.
func (c *Client) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok || c.opts.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.opts.Timeout)
}
