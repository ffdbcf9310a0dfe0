package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"gotycoon/internal/browser"
	"gotycoon/internal/rescue"
)

// guard serves a path only to clients that have this access.
func (s *Server) guard(access Access, h http.Handler) http.Handler {
	h = s.rescued(h)
	if access == Open {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.opts.Authorize(r, access == Admin); err != nil {
			refuse(w, err)
			return
		}
		if err := s.wantedByUser(r); err != nil {
			refuse(w, err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// wantedByUser returns an error if a web page makes a browser send the request without its user's
// intent.
func (s *Server) wantedByUser(r *http.Request) error {
	if s.opts.Pages == nil {
		return nil
	}
	return s.opts.Pages.Check(browser.HeadersOf(r), browser.About{
		Changes: r.Method != http.MethodGet && r.Method != http.MethodHead,
		Proven:  r.TLS != nil || s.opts.Proves && r.Header.Get("Authorization") != "",
	})
}

// rescued answers a request that panics with status 500. net/http itself would close the connection
// without an answer or a log line, and a page of the console would wait for ever. A handler that
// panics with http.ErrAbortHandler wants just that: its answer has begun and cannot become another
// one.
func (s *Server) rescued(h http.Handler) http.Handler {
	return http.HandlerFunc(func(reply http.ResponseWriter, r *http.Request) {
		w := newPaced(reply)
		if err := rescue.Do(s.opts.Logger, r.Method+" "+r.URL.Path, func() { h.ServeHTTP(w, r) }, http.ErrAbortHandler); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

// challenge asks a client for a user and password.
const challenge = `Basic realm="gotycoon", charset="UTF-8"`

// refuse answers a refused request with the reason.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusForbidden
	if e, ok := errors.AsType[interface {
		error
		Status() int
	}](err); ok {
		status = e.Status()
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	http.Error(w, err.Error(), status)
}

// May returns nil if the sender of a request has the access, else the reason. Handlers call it for
// parts of an answer that not all may see.
func (s *Server) May(r *http.Request, access Access) error {
	if access == Open {
		return nil
	}
	return s.opts.Authorize(r, access == Admin)
}

const (
	pieceSize = 64 << 10         // bytes of a reply that a client is sent at a time
	pieceTime = 30 * time.Second // for the client to take a piece
)

// paced is a reply whose client has pieceTime for each piece of it. Without a limit a client that
// does not read would hold the reply, and one of the few scrapes, for ever; a limit of the reply as
// a whole (http.Server.WriteTimeout) would end profiles and backups, which may take long.
type paced struct {
	http.ResponseWriter
	control *http.ResponseController
	own     atomic.Bool // the handler sets deadlines itself
}

func newPaced(w http.ResponseWriter) *paced {
	p := &paced{ResponseWriter: w, control: http.NewResponseController(w)}
	p.begin() // a reply without a body is not written by Write
	return p
}

func (p *paced) begin() {
	if !p.own.Load() {
		// An error means that the client has gone: Write returns it, too.
		_ = p.control.SetWriteDeadline(time.Now().Add(pieceTime))
	}
}

// Write implements io.Writer.
func (p *paced) Write(b []byte) (n int, err error) {
	for len(b) > pieceSize {
		p.begin()
		m, err := p.ResponseWriter.Write(b[:pieceSize])
		n += m
		if err != nil {
			return n, err
		}
		b = b[pieceSize:]
	}
	p.begin()
	m, err := p.ResponseWriter.Write(b)
	return n + m, err
}

// SetWriteDeadline is what http.ResponseController calls for a handler that sets deadlines of its
// own: they hold from now on.
func (p *paced) SetWriteDeadline(deadline time.Time) error {
	p.own.Store(true)
	return p.control.SetWriteDeadline(deadline)
}

// Unwrap gives http.ResponseController the other methods.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// net/http reads ConnectionState right after Accept. Our TLS connections do the handshake on the
// first read, so the state would still be empty there. withState reads it for each request instead.

type connKey struct{}

// keepConn puts a connection into the context of its requests.
func keepConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// withState sets Request.TLS to the present state of the connection, nil for plain text, and notes
// that the connection is served.
func withState(all *connections, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			defer all.serve(c)()
		}
		if c, ok := r.Context().Value(connKey{}).(interface{ ConnectionState() tls.ConnectionState }); ok {
			r.TLS = nil
			if state := c.ConnectionState(); state.HandshakeComplete {
				r.TLS = &state
			}
		}
		h.ServeHTTP(w, r)
	})
}
