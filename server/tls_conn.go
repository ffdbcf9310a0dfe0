package server

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"gotycoon/internal/tlsport"
)

// wire is a connection as the protocols see it: the bare socket, or TLS.
type wire interface {
	net.Conn
	CloseWrite() error
}

// newWire returns what speaks the port's language with a client.
func (l *listener) newWire(socket *net.TCPConn, plain bool) wire {
	if plain || l.tls == nil {
		return socket
	}
	return l.tls.Wrap(socket)
}

// open does the handshake of a connection to a port that speaks TLS.
func (c *conn) open() bool {
	secure, ok := c.wire.(*tlsport.Conn)
	if !ok {
		return true
	}
	opened, err := secure.Open()
	if err != nil {
		return false
	}
	if bare, ok := opened.(*net.TCPConn); ok {
		c.wire = bare
		c.io.Replace(bare)
	}
	return true
}

// listenPlain opens the plaintext port beside the other, if there shall be one. The error is the text of a log line.
func (l *listener) listenPlain() error {
	port := l.cfg.TLS.PlainPort
	if port == 0 {
		return nil
	}
	addr := net.JoinHostPort(l.host, strconv.Itoa(port))
	socket, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", addr)
	if err != nil {
		return fmt.Errorf("socket error: expr=%s:%d msg=bind failed", l.host, port)
	}
	l.plain = socket.(*net.TCPListener)
	l.log.system("plaintext port opened: expr=%s:%d", l.host, port)
	return nil
}
