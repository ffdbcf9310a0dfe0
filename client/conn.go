package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
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
	sent   bool   // a part of the present request may have reached the server
}

// dial connects to a server as the options say.
func (o *Options) dial(ctx context.Context, addr string) (*conn, error) {
	connect := o.Dial
	if connect == nil {
		connect = new(net.Dialer).DialContext
	}
	nc, err := connect(ctx, "tcp", addr)
	if err == nil && o.Dial == nil && o.TLS != nil {
		nc, err = handshake(ctx, nc, addr, o.TLS)
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("connecting to %s: %w", addr, context.Cause(ctx))
	}
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
	cn.sent = false
	err := f(cn)
	if !stop() {
		cn.broken = true // the deadline has been set, or will be at any moment
		if errors.Is(err, ErrNetwork) {
			err = networkError(context.Cause(ctx))
		}
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Code == Network {
		e.Sent = cn.sent
	}
	return err
}

// send writes the requests in out.
func (cn *conn) send() error {
	cn.broken = true // until the reply has been read
	n, err := cn.Write(cn.out)
	cn.sent = cn.sent || n > 0
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

// Credentials are a user and password, or a token, for a server with an access file. A token is
// preferred.
type Credentials struct {
	User, Password string
	Token          string
}

// authorization returns the value of the Authorization header, "" without credentials.
func (c *Credentials) authorization() string {
	switch {
	case c.Token != "":
		return "Bearer " + c.Token
	case c.User != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Password))
	}
	return ""
}

// secureConn is a connection over TLS.
type secureConn struct {
	*tls.Conn
	below *belowTLS
}

// handshake puts TLS on a connection. It closes nc after an error.
func handshake(ctx context.Context, nc net.Conn, addr string, config *tls.Config) (net.Conn, error) {
	if config.ServerName == "" && !config.InsecureSkipVerify {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		config = config.Clone()
		config.ServerName = host
	}
	below := &belowTLS{Conn: nc}
	c := tls.Client(below, config)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = nc.Close() // the error is that of the handshake
		return nil, err
	}
	return &secureConn{c, below}, nil
}
