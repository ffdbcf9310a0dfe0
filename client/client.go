// Package client talks to a gotycoon or Kyoto Tycoon server.
//
//	c := client.New("localhost:1978", client.Options{})
//	defer c.Close()
//	db := c.DB("")
//	err := db.Set(ctx, "japan", []byte("tokyo"), client.In(time.Hour))
//	value, err := db.Get(ctx, "japan")
//	for record, err := range db.All(ctx) { … }
//
// A Client keeps connections, and many goroutines may use it. A Cursor has a connection of its
// own and belongs to one goroutine. The context of a call limits its time. Errors are *Error; test
// for ErrNoRecord, ErrDuplicate and ErrConflict with errors.Is.
//
// # Errors of the network
//
// An error of the network is ErrNotSent if the server cannot have got the call, and
// ErrOutcomeUnknown if it may have carried it out, with the reply lost. The caller decides whether
// to repeat an update with an unknown outcome.
//
// # Several servers
//
// New takes several addresses, with commas: the servers of a cluster, of which one is the primary.
//
//	c := client.New("a:1978,b:1978,c:1978", client.Options{})
//
// The client asks all of them for their role, sends its calls to the primary, and looks for another
// one when the primary dies, hangs, or says that it is none any more. A call waits for a primary
// until its context ends, or for Options.FindTime. What is sent again then:
//
//   - any call that was not sent, and any call on one record that the server has refused because it
//     is no primary: nothing has been done.
//   - reads without signals: Get, GetRecord, Check, Exists, GetBulk, GetBinary, the Match methods,
//     Status, Report, Void, Echo.
//   - with Options.RepeatUpdates also Set, SetBulk, SetBinary and Remove. They are idempotent. But
//     when the first one was carried out and only its reply was lost, the second one comes later,
//     and may replace what another client has stored in between. So this is for records that have
//     one writer. Remove returns ErrNoRecord if the first one has removed the record.
//
// Nothing else is sent again once it may have reached a server: Add, Replace, Append, increments,
// CAS, Seize, RemoveBulk, Clear, scripts, Call of other procedures, and everything with signals.
// Cursors and Follow begin at the primary and end with its connection.
//
// A server that another one has followed as a slave and that clients may write to is found to be
// no primary within Options.CheckTime only. Start slaves with -slave-read-only, so that they refuse
// updates by themselves.
package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"time"
)

// DefaultPort is the default port of a server.
const DefaultPort = "1978"

// Options of a Client. The zero value is usable.
type Options struct {
	// Timeout limits a call whose context has no deadline, and the wait for a message in Follow; 0
	// means no limit.
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
		o.MaxIdle = 64
	}
	return &Client{addr: withPort(addr), opts: o}
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
	if c.opts.Dial == nil {
		return dial(ctx, c.addr, c.opts.TLS)
	}
	nc, err := c.opts.Dial(ctx, "tcp", c.addr)
	if err != nil {
		return nil, networkError(err)
	}
	return &conn{Conn: nc, in: bufio.NewReaderSize(nc, readBuffer)}, nil
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
	ctx, cancel := c.limit(ctx)
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
func (c *Client) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok || c.opts.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.opts.Timeout)
}
