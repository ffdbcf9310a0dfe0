package admin

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

// net/http reads ConnectionState right after Accept. Our TLS connections do the handshake on the
// first read, so the state would still be empty there. withState reads it for each request instead.

type connKey struct{}

// keepConn puts a connection into the context of its requests.
func keepConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// withState sets Request.TLS to the present state of the connection, nil for plain text.
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
