// Package portserver runs the connections of a server's ports: a goroutine that begins each
// connection, a limit on their number, and a stop that gives them time to finish their work.
//
// Most protocols hand over a function that serves one connection, and stop with Close:
//
//	s := portserver.Start(l, portserver.Options{Serve: serve, MaxConns: 1000, Logger: log})
//	defer s.Close()
//
// A protocol that has to know its connections while they are served makes a Session of each, and
// may stop in phases: StopAccepting, then Each with what the sessions shall do, then Wait, then
// Close.
package portserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	defaultGrace = time.Second
	// acceptPause follows an error of accept, for example too many open files.
	acceptPause = 100 * time.Millisecond
)

// Options of a Server. One of Serve, Begin and NewSession is set.
type Options struct {
	// Serve serves one connection until its end. ctx ends when the server stops: reads then fail at
	// once, and after Grace the connection is closed. After Serve has returned, the server closes
	// the connection.
	Serve func(ctx context.Context, c net.Conn)

	// Begin makes the service of a connection that may rest. resume goes on with it, in any
	// goroutine.
	Begin func(ctx context.Context, c net.Conn, resume func()) Service

	// NewSession makes the session of an accepted connection. Nothing else is accepted meanwhile on
	// the socket, so NewSession must be quick.
	NewSession func(c net.Conn) Session

	MaxConns int               // open connections; Refuse gets further ones. 0: no limit
	Refuse   func(c net.Conn)  // may be nil; must be quick
	Full     func(refused int) // reports refusals, at most once a second; nil: a warning in the log
	Failed   func(err error)   // gets each error of accept; nil: a line in the log, once a second

	Grace  time.Duration // how long Serve may take to end after a stop; 0 means one second
	Logger *slog.Logger  // nil means silent
}

// Server accepts connections on its listening sockets.
//
// Its goroutines are accept, one for each socket, and one for each connection. Close ends them and
// waits for them.
type Server struct {
	opts      Options
	ctx       context.Context // ends when the server stops accepting
	cancel    context.CancelFunc
	sockets   []net.Listener
	accepting sync.WaitGroup // one per socket
	serving   sync.WaitGroup // one per connection, which ends with it

	mu      sync.Mutex // protects the fields below
	open    map[Session]struct{}
	opening int    // connections for which a place is reserved, and which have no session yet
	total   uint64 // connections so far
	refused seldom // log lines
}

// seldom limits a log line that might come very often to one in a second.
type seldom struct {
	last   time.Time
	passed int // lines left out since last
}

// say calls write at most once a second, with the number of calls of say since the last call of
// write, this one included.
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
	if o.NewSession == nil {
		o.NewSession = func(c net.Conn) Session { return &call{conn: c, opts: &o} }
	}
	if o.Full == nil {
		o.Full = func(refused int) {
			o.Logger.Warn("too many connections: one is refused", "limit", o.MaxConns, "refused", refused)
		}
	}
	s := &Server{opts: o, open: map[Session]struct{}{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.Add(l)
	return s
}

// Add begins to accept connections on one more socket, which now belongs to the server. It must not
// be called at the same time as StopAccepting or Close, or after them.
func (s *Server) Add(l net.Listener) {
	s.sockets = append(s.sockets, l)
	s.accepting.Go(func() { s.accept(l) })
}

// Addr returns the address of the first socket.
func (s *Server) Addr() net.Addr { return s.sockets[0].Addr() }

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

// Each calls do for the sessions of all open connections. do must be quick and must not call the
// server.
func (s *Server) Each(do func(Session)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for session := range s.open {
		do(session)
	}
}

// StopAccepting ends the context of the sessions, and returns when no more connections come in. The
// sockets stay open: nobody else can listen there yet, and a client that connects now waits.
func (s *Server) StopAccepting() {
	s.cancel()
	for _, l := range s.sockets {
		socket, ok := l.(interface{ SetDeadline(time.Time) error })
		if !ok || socket.SetDeadline(time.Unix(1, 0)) != nil {
			l.Close()
		}
	}
	s.accepting.Wait()
}

// Wait returns when the goroutines of all connections have ended. No more may be accepted.
func (s *Server) Wait() { s.serving.Wait() }

// Close stops accepting, closes the sockets, ends the connections and returns when their goroutines
// have ended. It is called once, also after StopAccepting.
func (s *Server) Close() error {
	s.cancel()
	var failed error
	for _, l := range s.sockets {
		failed = errors.Join(failed, l.Close())
	}
	s.accepting.Wait()
	s.Each(Session.Stop)
	late := time.AfterFunc(s.opts.Grace, func() { s.Each(Session.Cut) })
	defer late.Stop()
	s.Wait()
	return failed
}

// accept takes connections from one socket until the server stops.
func (s *Server) accept(from net.Listener) {
	var failed seldom
	for {
		c, err := from.Accept()
		switch {
		case err == nil:
			s.take(c)
			continue
		case s.ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return
		case s.opts.Failed != nil:
			s.opts.Failed(err)
		default:
			failed.say(func(int) { s.opts.Logger.Error("accepting a connection: " + err.Error()) })
		}
		select {
		case <-s.ctx.Done():
		case <-time.After(acceptPause):
		}
	}
}

// take starts the goroutine of a connection, or refuses the connection.
func (s *Server) take(c net.Conn) {
	if !s.admit() {
		if s.opts.Refuse != nil {
			s.opts.Refuse(c)
		}
		c.Close()
		return
	}
	session := s.opts.NewSession(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(session)
}

// begin starts the goroutine of a connection for which there is a place. The caller holds mu.
func (s *Server) begin(session Session) {
	s.opening--
	s.open[session] = struct{}{}
	s.serving.Add(1)
	go session.Serve(s.ctx, func() {
		defer s.serving.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, session)
	})
}

// Adopt serves a connection that has not come in by a socket of the server. It counts as one that
// has. Adopt reports whether the connection now belongs to the server: not if there are too many,
// and not after the server has begun to stop.
func (s *Server) Adopt(c net.Conn) bool {
	if !s.admit() {
		return false
	}
	session := s.opts.NewSession(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	// Whoever stops the server ends its context first and then takes mu to tell all sessions: so
	// they are told about this one, or it sees the end of the context here.
	if s.ctx.Err() != nil {
		s.opening--
		return false
	}
	s.begin(session)
	return true
}

// admit reports whether there is a place for one more connection, and reserves the place in the
// same step: the sockets share the limit, and two of them could otherwise give away the last place.
func (s *Server) admit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	if s.opts.MaxConns > 0 && len(s.open)+s.opening >= s.opts.MaxConns {
		s.refused.say(s.opts.Full)
		return false
	}
	s.opening++
	return true
}
