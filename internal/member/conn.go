package member

import (
	"net"
	"net/netip"

	"gotycoon/access"
	"gotycoon/internal/tlsport"
)

// Behalf returns a connection of a member as the ports of clients see it: its peer is the client,
// for access rules and in logs. c is a connection after Accept, plain or over TLS.
func Behalf(c net.Conn, client access.Client) net.Conn {
	b := behalf{client: client, via: c.RemoteAddr()}
	switch c := c.(type) {
	case *net.TCPConn:
		return &Plain{c, b}
	case *tlsport.Conn:
		return &Secure{c, b}
	}
	panic("member: a connection of another kind")
}

// behalf is what a connection knows of the client at its far end. It implements access.Forwarded.
type behalf struct {
	client access.Client
	via    net.Addr
}

// Client implements access.Forwarded.
func (b *behalf) Client() access.Client { return b.client }

// Via implements access.Forwarded.
func (b *behalf) Via() net.Addr { return b.via }

// addr returns the client's address, which Accept has looked at.
func (b *behalf) addr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(b.client.Address))
}

// Plain is a connection without TLS between the servers. It has the methods of a socket, so that
// it is served as fast as a client's own.
type Plain struct {
	*net.TCPConn
	behalf
}

// RemoteAddr returns the address of the client.
func (p *Plain) RemoteAddr() net.Addr { return p.addr() }

// Secure is a connection over TLS between the servers.
type Secure struct {
	*tlsport.Conn
	behalf
}

// RemoteAddr returns the address of the client.
func (s *Secure) RemoteAddr() net.Addr { return s.addr() }

// Open returns the connection itself: its handshake is over.
func (s *Secure) Open() (net.Conn, error) { return s, nil }
