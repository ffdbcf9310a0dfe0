package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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
	started  bool
	served   chan struct{} // closed when no more connections are accepted
}

// New opens the port. The server answers after Start.
func New(o Options) (*Server, error) {
	o.setDefaults()
	s := &Server{opts: o, mux: http.NewServeMux(), registry: prometheus.NewPedanticRegistry(), served: make(chan struct{})}
	s.http = &http.Server{
		Handler:           withState(s.mux),
		ConnContext:       keepConn,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
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
