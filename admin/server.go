// Package admin is the HTTP listener for those who run a server: metrics for Prometheus, probes,
// profiles, the version, and whatever other parts add by Handle. It has a port of its own, because
// on the data port every path is a key.
//
//	/metrics        what Options.Collectors measure
//	/livez          200 while the process works, 503 with the reason after it has failed
//	/readyz         200 if requests may be sent here, else 503 with one reason per line; further
//	                alarms follow in lines of their own
//	/primary        200 if this server is the primary for data, else 503
//	/replica        200 if it is a replica, with ?max-lag=SECONDS one that is not too far behind
//	/version        version, Go, revision
//	/debug/pprof/   profiles, for admins
//
// The listener answers as soon as it is started, even before the databases are open.
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

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
	Notes func() []string // what else is wrong, which is no reason to send requests elsewhere

	// Primary reports whether the server is the primary; Replica, whether it is a replica that is
	// whole and, if limited is true, not further behind than limit. text says the role and where
	// the primary is. Nil: there are no such probes.
	Primary func() (ok bool, text string)
	Replica func(limit time.Duration, limited bool) (ok bool, text string)

	MaxConns int // open connections, see connections; 0: any number

	Version, Revision string // of the product, for /version

	// CommandLine is what the profiles show as arguments of the process, which may have passwords.
	CommandLine []string
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
	if o.Notes == nil {
		o.Notes = func() []string { return nil }
	}
}

const (
	headerTimeout = 10 * time.Second // for the header of a request
	readTimeout   = time.Minute      // for the whole request
	idleTimeout   = 2 * time.Minute  // between two requests
	maxHeader     = 64 << 10
	stopGrace     = time.Second // for requests in execution when the server closes
)

// Server is an admin listener. Close ends its goroutines.
type Server struct {
	opts     Options
	mux      *http.ServeMux
	registry *prometheus.Registry
	http     *http.Server
	listener net.Listener
	conns    connections
	started  bool
	served   chan struct{} // closed when no more connections are accepted
}

// New opens the port. The server answers after Start.
func New(o Options) (*Server, error) {
	o.setDefaults()
	s := &Server{opts: o, mux: http.NewServeMux(), registry: prometheus.NewPedanticRegistry(), served: make(chan struct{})}
	s.conns.most, s.conns.log, s.conns.open = o.MaxConns, o.Logger, map[net.Conn]*connection{}
	s.http = &http.Server{
		Handler:           withState(&s.conns, s.mux),
		ConnContext:       keepConn,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		ConnState:         s.conns.note,
	}
	for _, c := range o.Collectors {
		if err := s.Register(c); err != nil {
			return nil, err
		}
	}
	s.routes()
	o.Routes(s)
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("opening the admin port: %w", err)
	}
	if o.Secure != nil {
		l = o.Secure(l)
	}
	s.listener = l
	return s, nil
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Handle adds a path, as a pattern of http.ServeMux. It may be called at any time, once for each
// pattern.
func (s *Server) Handle(pattern string, access Access, h http.Handler) {
	s.mux.Handle(pattern, s.guard(access, h))
}

// Register adds metrics. It may be called at any time. The error says what is wrong with their
// names.
func (s *Server) Register(c prometheus.Collector) error {
	if err := s.registry.Register(c); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// Start begins to answer.
func (s *Server) Start() {
	s.started = true
	go func() {
		defer close(s.served)
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.opts.Logger.Error("the admin listener has ended: " + err.Error())
		}
	}()
}

// Close ends the listener. Requests in execution have a second to end.
func (s *Server) Close() error {
	if !s.started {
		return s.listener.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	<-s.served
	return err
}

// Gate lets requests use the databases only while they are open. The listener starts before the
// databases are open and ends after they are closed. So whatever reads a database does so inside a
// Gate, and the server closes the Gate before it closes the databases.
type Gate struct {
	mu     sync.RWMutex // held for reading by each call inside
	closed bool
}

// Do runs f inside the gate. It reports false, without running f, if the gate is closed. f must be
// short, since Close waits for it.
func (g *Gate) Do(f func()) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.closed {
		return false
	}
	f()
	return true
}

// Close closes the gate, and waits until nobody is inside.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// Collector returns the metrics of c while the gate is open, and none after that.
func (g *Gate) Collector(c prometheus.Collector) prometheus.Collector { return &gated{c, g} }

type gated struct {
	prometheus.Collector
	gate *Gate
}

// Collect implements prometheus.Collector.
func (c *gated) Collect(to chan<- prometheus.Metric) {
	c.gate.Do(func() { c.Collector.Collect(to) })
}
