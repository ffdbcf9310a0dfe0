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

// The kinds of access. Open paths show nothing but a status.
const (
	Open  Access = iota // everybody who can connect
	Read                // clients that may read
	Admin               // clients that may change the server
)

// Options of a Server.
type Options struct {
	Addr   string       // HOST:PORT to listen on; port 0 means any free port
	Logger *slog.Logger // nil: silent

	// Secure makes the TCP listener speak TLS; nil means plain text. If its connections have a
	// method ConnectionState, Authorize finds the result in Request.TLS.
	Secure func(net.Listener) net.Listener

	// Authorize returns nil, or the reason why a request is refused; admin says that the request
	// needs Admin access. The method Status of an error, if it has one, is the HTTP status;
	// otherwise the status is 403. Nil: all requests are allowed.
	Authorize func(r *http.Request, admin bool) error

	// Pages decides which requests of browsers are served, after Authorize; nil: all of them.
	// Proves says that Authorize checks credentials, so that a request with credentials which
	// passes has proved who sends it.
	Pages  *browser.Policy
	Proves bool

	// Routes adds paths before the first request; nil: none. Handle can add more later.
	Routes func(s *Server)

	Collectors []prometheus.Collector // shown under /metrics; Register can add more later

	Live  func() error    // why the process has failed; nil: it never fails
	Ready func() []string // reasons to send requests elsewhere; nil: there are none
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
