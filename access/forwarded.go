package access

import (
	"context"
	"crypto/tls"
	"net"
)

// Client is a client that is connected to another server of the cluster, as that server describes
// it.
type Client struct {
	Address  string   // IP:PORT
	Secure   bool     // it speaks TLS
	Subjects []string // in its verified certificate
}

// Forwarded is a connection that another server of the cluster has opened for a client. Rules apply
// to the client. Whoever makes a Forwarded has made sure that the other server is a member.
type Forwarded interface {
	Client() Client
	Via() net.Addr // address of the other server
}

// ClientOf describes the client of a connection to this server, for another server.
func ClientOf(c net.Conn) Client {
	if f, ok := c.(Forwarded); ok {
		return f.Client()
	}
	client := Client{Address: c.RemoteAddr().String()}
	if secure, ok := c.(interface{ ConnectionState() tls.ConnectionState }); ok {
		state := secure.ConnectionState()
		client.Secure, client.Subjects = state.HandshakeComplete, subjects(&state)
	}
	return client
}

// forwardedPeer returns the peer of a forwarded connection. A client that has come by way of
// another machine is not on this one: the address 172.17.0.1, for example, exists on every machine
// with containers. And a loopback address says only that the client is on the other server's
// machine, so that server's address takes its place.
func (g *Guard) forwardedPeer(f Forwarded) peer {
	client, via := f.Client(), peerOf(f.Via())
	p := peerOf(textAddr(client.Address))
	p.certs, p.away = client.Subjects, !g.isLocal(via.addr)
	if p.away && (p.addr.IsLoopback() || !p.addr.IsValid()) {
		p.addr = via.addr
	}
	return p
}

// WrongProof counts a wrong proof of a peer that claims to be another server of the cluster, as
// wrong credentials are counted, and returns after the delay that the peer has earned, or when ctx
// ends.
func (g *Guard) WrongProof(ctx context.Context, from net.Addr) {
	if g == nil {
		return
	}
	p := peerOf(from)
	g.slow.fail(p.addr, g.opts.Now())
	if wait := g.slow.wait(p.addr, g.opts.Now()); wait > 0 {
		_ = g.pause(ctx, wait) // the answer is the same if the pause is cut short
	}
}
