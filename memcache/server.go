package memcache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/internal/portserver"
)

// Errors of New and of Config.Check.
var (
	// ErrReadOnlyQueue: a queue needs updates.
	ErrReadOnlyQueue = errors.New("message queue cannot be read-only")
	// ErrUnorderedQueue: messages are found by the order of their keys. In a hash database they
	// would be stored and never be found.
	ErrUnorderedQueue = errors.New("a message queue needs a database with an order of keys: use %, +, .kct or .kcf as the first database, " +
		"or leave out the option q")
)

// Options of a Server.
type Options struct {
	Config

	DB      *db.DB        // the database that is served; nobody else may call its Watch
	Started time.Time     // when the process began, for stats
	Access  *access.Guard // rights of clients; nil: all of them for everybody
	Logger  *slog.Logger  // nil means silent

	Meter    *metrics.Meter    // measures connections; nil: nobody does
	Requests *metrics.Protocol // made by NewRequests; nil: requests are not counted
	MaxConns int               // open connections; more are closed at once. 0 means no limit
	Limits   *netio.Limits     // of all connections of the process; nil means none
}

// Server is the service. It is opened and closed each time the process starts and stops listening.
type Server struct {
	opts     Options
	db       *db.DB
	commands map[string]*command
	places   map[string]int // index of a word in requestNames
	pool     *sync.Pool
	counts   counts
	queues   *queues // nil unless Config.Queue
	wins     wins
	flush    flusher
	ports    *portserver.Server // nil while closed
}

// New prepares a service. Its errors are those of Config.Check.
func New(o Options) (*Server, error) {
	if err := o.Check(o.DB.Info().Kind); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: o, db: o.DB, pool: netio.NewPool()}
	s.commands, s.places = table(o.Config), places()
	watch := db.WatchOptions{Uniques: o.Modern, Claims: o.Queue}
	if o.Queue {
		s.queues = newQueues(o.DB)
		watch.News, watch.Undone = s.queues.arrived, s.queues.undone
	}
	if o.Modern || o.Queue {
		o.DB.Watch(watch)
	}
	return s, nil
}

// Open begins to serve the connections of l, which now belongs to the server. Counters begin at 0.
func (s *Server) Open(l net.Listener) {
	s.counts.reset()
	s.flush.open(s)
	s.ports = portserver.Start(l, portserver.Options{Serve: s.serve, MaxConns: s.opts.MaxConns, Logger: s.opts.Logger})
}

// Close ends the connections and gives back the messages that they hold. The server may be opened
// again.
func (s *Server) Close() error {
	if s.ports == nil {
		return nil
	}
	err := s.ports.Close()
	s.ports = nil
	s.flush.close()
	return err
}

// serve serves one connection to its end.
func (s *Server) serve(ctx context.Context, socket net.Conn) {
	s.counts.connections.Add(1)
	s.counts.open.Add(1)
	peer := socket.RemoteAddr().String()
	b := base{s: s, db: s.db, modern: s.opts.Modern}
	b.io = netio.New(socket, s.pool, netio.Options{Timeout: s.opts.Timeout, MaxRequest: maxRequest, Limits: s.opts.Limits, Access: s.opts.Access})
	c := &conn{peer: peer, wire: wire{base: b}, storage: storage{consumer: consumer{base: b, ctx: ctx}}}
	c.io.Meter = s.opts.Meter.NewRecorder(c.peer)
	stop := context.AfterFunc(ctx, func() { _ = c.io.Stop(stopGrace) })
	defer stop()
	s.info("connected: expr=%s", c.peer)
	c.run()
	c.giveBack()
	c.io.Close()
	s.counts.open.Add(-1)
	s.info("disconnecting: expr=%s", c.peer)
}

// stopGrace is how long the server waits, when it stops, for the rest of a request that has begun.
const stopGrace = 500 * time.Millisecond

// info logs a line about a connection.
func (s *Server) info(format string, args ...any) {
	if s.opts.Logger.Enabled(context.Background(), slog.LevelInfo) {
		s.opts.Logger.Info(fmt.Sprintf(format, args...))
	}
}

// logFailure logs a database error.
func (s *Server) logFailure(err error) {
	s.opts.Logger.Error("database error: " + err.Error())
}

// logs reports whether connections and commands are logged.
func (s *Server) logs() bool {
	return !s.opts.Meter.Sampling() && s.opts.Logger.Enabled(context.Background(), slog.LevelInfo)
}

// requestNames are the names under which commands are counted: the words of the text protocols, and
// the further operations of the binary protocol.
func requestNames() []string {
	rows := append(classic(), modern()...)
	names := make([]string, 0, len(rows)+1)
	for _, row := range rows {
		names = append(names, row.name)
	}
	return append(names, "flush", "noop", "stat", unknownRequest)
}

// unknownRequest counts all other commands.
const unknownRequest = "unknown"

// NewRequests returns counters of all commands.
func NewRequests() *metrics.Protocol { return metrics.NewProtocol("memcached", requestNames()...) }

func places() map[string]int {
	of := map[string]int{}
	for i, name := range requestNames() {
		of[name] = i
	}
	return of
}

// measureText counts the command in words.
func (c *conn) measureText() {
	if c.io.Meter == nil {
		return
	}
	d := metrics.Detail{In: len(c.line), Out: len(c.io.Out)}
	word := ""
	if len(c.words) > 0 {
		word = string(c.words[0])
	}
	if len(c.words) > 1 {
		d.Key = c.words[1]
	}
	c.measure(word, d)
}

// measure counts a message of the binary protocol.
func (x *exchange) measure() {
	if x.io.Meter == nil {
		return
	}
	row, _ := x.r.op.operation()
	x.conn.measure(row.name, metrics.Detail{Key: x.r.key, In: headerSize + len(x.r.extras) + len(x.r.key) + len(x.r.value), Out: len(x.io.Out)})
}

func (c *conn) measure(word string, d metrics.Detail) {
	place, known := c.s.places[word]
	if !known {
		place = c.s.places[unknownRequest]
	}
	d.Protocol, d.Command, d.Failed = c.s.opts.Requests, place, !known || c.failed
	c.failed = false
	c.io.Meter.Note(d.Protocol, place, d.Failed)
	if c.io.Meter.Detailed() {
		d.Database = c.db.Name()
		c.io.Meter.Describe(d)
	}
}
