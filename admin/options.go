package admin

import (
	"log/slog"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"gotycoon/internal/browser"
)

// Access is who may use a path.
type Access int

// The kinds of access. Open paths tell whoever asks no more than their status.
const (
	Open  Access = iota // everybody who can connect
	Read                // those who may read
	Admin               // those who may change the server
)

// Options of a Server.
type Options struct {
	Addr   string       // HOST:PORT to listen on; port 0 is any free one
	Logger *slog.Logger // nil: silent

	// Secure makes the listener, a TCP one, speak TLS. Nil: plain text. What its connections say by a method ConnectionState is
	// Request.TLS for Authorize.
	Secure func(net.Listener) net.Listener

	// Authorize returns why a request is refused; admin tells whether it needs Admin access. An error may have a method Status that
	// returns the HTTP status, else it is 403. Nil: all are allowed.
	Authorize func(r *http.Request, admin bool) error

	// Pages decides which requests of browsers are served, after Authorize; nil: all. Proves tells that Authorize looks at credentials, so
	// that those which it lets in prove something.
	Pages  *browser.Policy
	Proves bool

	// Routes adds paths before the first request; nil: none. More can be added later with Handle.
	Routes func(s *Server)

	Collectors []prometheus.Collector // of /metrics; more can be added later with Register

	Live  func() error    // why the process has failed; nil: it never has
	Ready func() []string // why no requests should come; nil: they may always
	Reads func() []string // the same for requests that only read; nil: as Ready

	Version string // of the product, for /version and the metrics
}

func (o *Options) setDefaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Authorize == nil {
		o.Authorize = func(*http.Request, bool) error { return nil }
	}
	if o.Routes == nil {
		o.Routes = func(*Server) {}
	}
	if o.Live == nil {
		o.Live = func() error { return nil }
	}
	if o.Ready == nil {
		o.Ready = func() []string { return nil }
	}
	if o.Reads == nil {
		o.Reads = o.Ready
	}
}
