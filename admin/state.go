package admin

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

// net/http asks a connection for its state when it is accepted, which is before the handshake of one that does it when it is first read.

type connKey struct{}

// keepConn puts a connection into the context of its requests.
func keepConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// withState makes Request.TLS what the connection says now, nil for plain text.
func withState(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(interface{ ConnectionState() tls.ConnectionState }); ok {
			r.TLS = nil
			if state := c.ConnectionState(); state.HandshakeComplete {
				r.TLS = &state
			}
		}
		h.ServeHTTP(w, r)
	})
}
