package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

const (
	readBuffer   = 16 << 10
	keepOutBytes = 1 << 20 // a larger buffer for requests is dropped when the connection is idle
)

// conn is a connection to the server. HTTP and binary requests may alternate on it.
type conn struct {
	net.Conn
	in     *bufio.Reader
	auth   string // header line with credentials; empty: no credentials
	out    []byte // requests to be sent
	large  []byte // a part of a reply that is larger than in's buffer
	broken bool   // a reply has not been read to its end
}

// dial connects to a server, over TLS if secure is not nil.
func dial(ctx context.Context, addr string, secure *tls.Config) (*conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err == nil && secure != nil {
		nc, err = handshake(ctx, nc, addr, secure)
	}
	if err != nil {
		return nil, networkError(err)
	}
	return &conn{Conn: nc, in: bufio.NewReaderSize(nc, readBuffer)}, nil
}

// connect connects to the server as the options say.
func (c *Client) connect(ctx context.Context) (*conn, error) {
	if c.opts.Dial == nil {
		return dial(ctx, c.addr, c.opts.TLS)
	}
	nc, err := c.opts.Dial(ctx, "tcp", c.addr)
	if err != nil {
		return nil, networkError(err)
	}
	return &conn{Conn: nc, in: bufio.NewReaderSize(nc, readBuffer)}, nil
}

// during runs f, and interrupts it when ctx ends.
func (cn *conn) during(ctx context.Context, f func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return networkError(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cn.SetDeadline(time.Unix(1, 0)) })
	err := f(cn)
	if stop() {
		return err
	}
	cn.broken = true // the deadline has been set, or will be at any moment
	if errors.Is(err, ErrNetwork) {
		return networkError(context.Cause(ctx))
	}
	return err
}

// send writes the requests in out.
func (cn *conn) send() error {
	cn.broken = true // until the reply has been read
	_, err := cn.Write(cn.out)
	cn.out = cn.out[:0]
	if err != nil {
		return networkError(err)
	}
	return nil
}

// rest prepares the connection for its idle time.
func (cn *conn) rest() {
	if cap(cn.out) > keepOutBytes {
		cn.out = nil
	}
}
