package memcache

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/internal/portserver"
)

// Server is the service. It is opened and closed each time the process starts and stops listening.
type Server struct {
	shared
	commands map[string]*command
	pool     *sync.Pool
	ports    atomic.Pointer[portserver.Server] // nil while closed
}

// New prepares a service. Its errors are those of Config.Check.
func New(o Options) (*Server, error) {
	if err := o.Check(o.DB.Info().Kind); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{shared: shared{opts: o, db: o.DB, places: places()}, commands: table(o.Config), pool: netio.NewPool()}
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
	s.flush.open(&s.shared)
	s.ports.Store(portserver.Start(l, portserver.Options{Begin: s.begin, MaxConns: s.opts.MaxConns, Logger: s.opts.Logger}))
}

// Adopt serves a connection that has come in by another port, and reports whether it could.
func (s *Server) Adopt(c net.Conn) bool {
	ports := s.ports.Load()
	return ports != nil && ports.Adopt(c)
}

// Close ends the connections and gives back the messages that they hold. The server may be opened
// again.
func (s *Server) Close() error {
	ports := s.ports.Swap(nil)
	if ports == nil {
		return nil
	}
	err := ports.Close()
	s.flush.close()
	if s.queues != nil {
		s.queues.others.work.Wait()
	}
	return err
}

// begin makes the connection of a client.
func (s *Server) begin(ctx context.Context, socket net.Conn, resume func()) portserver.Service {
	s.counts.connections.Add(1)
	s.counts.open.Add(1)
	peer := socket.RemoteAddr().String()
	b := base{s: &s.shared, db: s.db, modern: s.opts.Modern}
	b.io = netio.New(socket, s.pool, netio.Options{Timeout: s.opts.Timeout, MaxRequest: maxRequest, Limits: s.opts.Limits, Loops: s.opts.Loops, Access: s.opts.Access})
	c := &conn{peer: peer, commands: s.commands, wire: wire{base: b}, storage: storage{consumer: consumer{base: b, ctx: ctx}}}
	c.io.Ending = ctx
	c.io.Meter = s.opts.Meter.NewRecorder(c.peer)
	c.io.RestIn(resume)
	c.unstop = context.AfterFunc(ctx, func() { _ = c.io.Stop(stopGrace) })
	s.info("connected: expr=%s", c.peer)
	return c
}

// End implements portserver.Service.
func (c *conn) End() {
	defer c.unstop()
	c.giveBack()
	c.io.Close()
	c.s.counts.open.Add(-1)
	c.s.info("disconnecting: expr=%s", c.peer)
}

// stopGrace is how long the server waits, when it stops, for the rest of a request that has begun.
const stopGrace = 500 * time.Millisecond

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

// NewRequests returns counters of all commands.
func NewRequests() *metrics.Protocol { return metrics.NewProtocol("memcached", requestNames()...) }

func places() map[string]int {
	of := map[string]int{}
	for i, name := range requestNames() {
		of[name] = i
	}
	return of
}

// Connections returns how many connections are open, and how many there have been since Open.
func (s *Server) Connections() (open int, total uint64) {
	return int(s.counts.open.Load()), uint64(s.counts.connections.Load())
}

// Metrics returns the definitions of the metrics of a Server.
func Metrics() []metrics.Definition {
	return []metrics.Definition{
		metrics.Define("gotycoon_memcached_lookups_total", metrics.Counter, "Operations of memcached clients, by whether they met a record.",
			"operation", "result"),
	}
}

// Figures returns the metrics of the server: the hits and misses of each kind of operation.
func (s *Server) Figures() metrics.Source {
	return metrics.Source{Definitions: Metrics(), Read: func(put metrics.Put) {
		n := &s.counts
		for operation, t := range map[string]*tally{
			"set": &n.set, "get": &n.get, "delete": &n.remove, "incr": &n.incr, "decr": &n.decr, "touch": &n.touch, "cas": &n.cas,
		} {
			put("gotycoon_memcached_lookups_total", float64(t.hits.Load()), operation, "hit")
			put("gotycoon_memcached_lookups_total", float64(t.misses.Load()), operation, "miss")
		}
	}}
}
