package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"time"
)

// The ports of servers whose address has none.
const (
	DefaultPort        = 1978
	DefaultLockPort    = 11400
	DefaultCounterPort = 11215
)

const maxIdle = 64 // default of Options.MaxIdle

// Options of a Client. The zero value is usable.
type Options struct {
	// Timeout limits a call whose context has no deadline, and the wait for a message in Follow and
	// Copy; 0 means no limit.
	Timeout time.Duration
	MaxIdle int // idle connections kept for later calls; 0 means 64
	// TLS makes the client speak TLS; nil means plaintext. An empty ServerName means the host of
	// the address.
	TLS *tls.Config

	// Dial makes the connections to the databases, ready for use: TLS above does not apply to them.
	// nil means TCP, with TLS if that is set.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// For several servers:
	RepeatUpdates bool          // send idempotent updates again after an unknown outcome, see above
	ReadReplicas  bool          // spread reads over replicas as well; they may be a moment old
	MaxLag        time.Duration // leave out replicas that are further behind; 0: any lag counts
	FindTime      time.Duration // limit of looking for a primary without a deadline; 0: 15 s
	CheckTime     time.Duration // ask the primary for its role this often; 0: every second

	// Credentials are sent with every call over HTTP. The binary protocol has no credentials: the
	// server judges its calls (SetBinary, Follow, Copy and others) by the client's address and
	// certificate.
	Credentials
}

// Client talks to one server, or to the primary of several.
type Client struct {
	addr    string
	opts    Options
	servers *servers // nil: there is one server

	mu     sync.Mutex // guards the fields below
	idle   []*conn
	closed bool
}

var (
	errClosed = errors.New("the client is closed")
	errToken  = errors.New("a token has no control characters")
)

// New returns a client of the server at addr, HOST:PORT or HOST, or of several servers whose
// addresses are separated by commas. The first call connects.
func New(addr string, o Options) *Client {
	if strings.Contains(addr, ",") {
		return &Client{addr: addr, opts: o, servers: newServers(addr, o)}
	}
	if o.MaxIdle == 0 {
		o.MaxIdle = maxIdle
	}
	return &Client{addr: withPort(addr, DefaultPort), opts: o}
}

// DB returns a database of the server by its name or number; "" is the first.
func (c *Client) DB(name string) *DB { return &DB{client: c, name: name} }

// Connect makes sure that the server can be reached.
func (c *Client) Connect(ctx context.Context) error {
	return c.with(ctx, repeated, func(*conn) error { return nil })
}

// Close closes the idle connections. Later calls fail.
func (c *Client) Close() error {
	if c.servers != nil {
		return c.servers.close()
	}
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
		_ = cn.Close() // for example, the server was restarted
	}
}

// dial connects to the client's server, or to the primary.
func (c *Client) dial(ctx context.Context) (*conn, error) {
	if c.servers != nil {
		return c.servers.dial(ctx, (*Client).dial)
	}
	value := c.opts.authorization()
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, errToken
	}
	cn, err := c.connect(ctx)
	if err == nil && value != "" {
		cn.auth = "Authorization: " + value + "\r\n"
	}
	return cn, err
}

// connect connects to the server as the options say.
func (c *Client) connect(ctx context.Context) (*conn, error) {
	if c.servers != nil {
		return c.servers.dial(ctx, (*Client).connect)
	}
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return nil, networkError(errClosed)
	}
	return c.opts.dial(ctx, c.addr)
}

// takeIdle returns the idle connection that was used last, nil if there is none.
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

// give keeps a connection for later calls, unless MaxIdle are kept already.
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

// with runs f on a connection, and keeps the connection if it can be used further. With several
// servers f may run again, as its repetition allows.
func (c *Client) with(ctx context.Context, r repetition, f func(*conn) error) error {
	ctx, cancel := c.opts.limit(ctx)
	defer cancel()
	if c.servers != nil {
		return c.servers.with(ctx, r, f)
	}
	cn, err := c.take(ctx)
	if err != nil {
		return err
	}
	err = cn.during(ctx, f)
	if cn.broken || cn.in.Buffered() > 0 { // leftover bytes would pass as the next reply
		_ = cn.Close()
		return err
	}
	c.give(cn)
	return err
}

// limit gives a context without a deadline the Timeout of the options.
func (o *Options) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok || o.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, o.Timeout)
}
