// Package portserver runs the connections of one port: one goroutine for each, a limit on their
// number, and a stop that gives them time to finish their work.
package portserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"gotycoon/internal/rescue"
)

const (
	defaultGrace = time.Second
	// acceptPause follows an error of accept, for example too many open files.
	acceptPause = 100 * time.Millisecond
)

// Options of a Server.
type Options struct {
	// Serve serves one connection until its end. ctx ends when the server stops: reads then fail at
	// once, and after Grace the connection is closed. After Serve has returned, the server closes
	// the connection.
	Serve func(ctx context.Context, c net.Conn)

	MaxConns int              // open connections; Refuse gets further ones. 0: no limit
	Refuse   func(c net.Conn) // may be nil; must be quick

	Grace  time.Duration // how long Serve may take to end after a stop; 0 means one second
	Logger *slog.Logger  // nil means silent
}

// Server accepts connections on one listening socket.
//
// Its goroutines are accept, and one for each connection. Close ends them and waits for them.
type Server struct {
	opts     Options
	socket   net.Listener
	ctx      context.Context
	cancel   context.CancelFunc
	accepted chan struct{}  // closed when accept has ended
	serving  sync.WaitGroup // one per connection

	mu    sync.Mutex // protects the fields below
	open  map[net.Conn]struct{}
	total uint64 // connections so far

	refused, failed seldom // log lines; only accept uses them
}

// seldom limits a log line that might come very often to one in a second.
type seldom struct {
	last   time.Time
	passed int // lines left out since last
}

// say calls write at most once a second, with the number of calls since then, this one included.
func (s *seldom) say(write func(times int)) {
	s.passed++
	if now := time.Now(); now.Sub(s.last) >= time.Second {
		write(s.passed)
		s.last, s.passed = now, 0
	}
}

// Start begins to accept connections on l, which now belongs to the server.
func Start(l net.Listener, o Options) *Server {
	if o.Grace <= 0 {
		o.Grace = defaultGrace
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: o, socket: l, accepted: make(chan struct{}), open: map[net.Conn]struct{}{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.accept()
	return s
}

// Addr returns the address of the port.
func (s *Server) Addr() net.Addr { return s.socket.Addr() }

// Conns returns the number of open connections.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Total returns the number of connections since the start, with those that were refused.
func (s *Server) Total() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Close stops accepting, ends the connections and returns when their goroutines have ended. It is
// called once.
func (s *Server) Close() error {
	s.cancel()
	err := s.socket.Close()
	<-s.accepted
	s.each(func(c net.Conn) { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	late := time.AfterFunc(s.opts.Grace, func() { s.each(func(c net.Conn) { c.Close() }) })
	defer late.Stop()
	s.serving.Wait()
	return err
}

func (s *Server) accept() {
	defer close(s.accepted)
	for {
		c, err := s.socket.Accept()
		switch {
		case err == nil:
			s.take(c)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			s.failed.say(func(int) { s.opts.Logger.Error("accepting a connection: " + err.Error()) })
			s.pause()
		}
	}
}

// pause waits for acceptPause, or until the server stops.
func (s *Server) pause() {
	select {
	case <-s.ctx.Done():
	case <-time.After(acceptPause):
	}
}

// take starts the goroutine of a connection, or refuses the connection.
func (s *Server) take(c net.Conn) {
	s.mu.Lock()
	s.total++
	full := s.opts.MaxConns > 0 && len(s.open) >= s.opts.MaxConns
	if !full {
		s.open[c] = struct{}{}
	}
	s.mu.Unlock()
	if !full {
		s.serving.Go(func() { s.serve(c) })
		return
	}
	s.refused.say(func(times int) {
		s.opts.Logger.Warn("too many connections: one is refused", "limit", s.opts.MaxConns, "refused", times)
	})
	if s.opts.Refuse != nil {
		s.opts.Refuse(c)
	}
	c.Close()
}

func (s *Server) serve(c net.Conn) {
	_ = rescue.Do(s.opts.Logger, "the connection is closed", func() { // the log has it
		if ready, err := open(c); err == nil {
			s.opts.Serve(s.ctx, ready)
		}
	})
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

func (s *Server) each(do func(net.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		do(c)
	}
}
