package client

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// idleHTTP is for how long a connection over TLS to a sequence or quota server waits for its next use.
const idleHTTP = 10 * time.Second

// secureConn is a connection over TLS.
type secureConn struct {
	*tls.Conn
	below *belowTLS
}

// handshake makes a connection one over TLS. It closes nc when that goes wrong.
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
		_ = nc.Close() // the handshake tells why
		return nil, err
	}
	return &secureConn{c, below}, nil
}

// secureHTTP makes calls over TLS. Connections are kept a while for the next call.
type secureHTTP struct {
	once  sync.Once
	https *http.Client
}

func (s *secureHTTP) client(config *tls.Config) *http.Client {
	s.once.Do(func() {
		s.https = &http.Client{Transport: &http.Transport{TLSClientConfig: config, IdleConnTimeout: idleHTTP}}
	})
	return s.https
}
