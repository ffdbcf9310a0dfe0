package client

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// idleHTTP is how long a TLS connection to a sequence or quota server is kept for the next call.
const idleHTTP = 10 * time.Second

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

// secureHTTP makes HTTP calls over TLS. It keeps connections for a while for the next call.
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
