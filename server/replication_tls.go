package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"gotycoon/internal/tlsfiles"
)

// masterLineEvery is how often the log says again why there is no TLS with a master.
const masterLineEvery = time.Minute

// masterDialer connects to masters over TLS.
type masterDialer struct {
	files *tlsfiles.Client
	log   logger

	mu   sync.Mutex // protects the fields below
	told string
	last time.Time
}

// masterDial returns the function that connects to masters over TLS, nil if masters are reached
// without TLS.
func masterDial(c *TLSConfig, log logger) (func(ctx context.Context, network, addr string) (net.Conn, error), error) {
	d, err := newMasterDialer(c, log)
	if d == nil || err != nil {
		return nil, err // no function, no error
	}
	return d.dial, nil
}

// newMasterDialer returns what connects to masters over TLS, nil if they are reached without TLS.
func newMasterDialer(c *TLSConfig, log logger) (*masterDialer, error) {
	if !c.toMaster() {
		return nil, nil // no dialer, no error
	}
	files, err := c.client(log.Logger)
	if err != nil {
		return nil, fmt.Errorf("TLS to the master: %w", err)
	}
	return &masterDialer{files: files, log: log}, nil
}

// dial connects and does the handshake, in which the master's certificate is checked.
func (d *masterDialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	socket, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := tls.Client(socket, d.files.Config(host))
	if err := c.HandshakeContext(ctx); err != nil {
		d.tell(addr, err)
		_ = socket.Close() // err says why
		return nil, err
	}
	return &masterConn{c, d, addr}, nil
}

// tell logs why there is no TLS with a master, for each new reason and once a minute. The follower
// itself merely tries again.
func (d *masterDialer) tell(addr string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if text := err.Error(); d.told != text || time.Since(d.last) > masterLineEvery {
		d.told, d.last = text, time.Now()
		d.log.error("TLS: no connection to the master %s: %v", addr, err)
	}
}

// masterConn is a connection to a master. A master that refuses our certificate says so after the
// handshake, as an error of a read.
type masterConn struct {
	*tls.Conn
	dialer *masterDialer
	addr   string
}

// Read implements net.Conn.
func (c *masterConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if alert, ok := errors.AsType[*net.OpError](err); ok && alert.Op == "remote error" {
		c.dialer.tell(c.addr, err)
	}
	return n, err
}
