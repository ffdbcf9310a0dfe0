package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"gotycoon/binproto"
	"gotycoon/httpapi"
	"gotycoon/internal/netio"
	"gotycoon/replication"
)

const (
	stopGrace   = time.Second            // what a half received request has left when the server stops
	stopRunning = 100 * time.Millisecond // what running requests have left before idle connections are closed
	acceptPause = 100 * time.Millisecond // after an error of accept, for example too many open files
)

var errNoNetwork = errors.New("the network configuration is not set")

// listener is the port between one listen and the next stop or restart.
//
// Its goroutines are accept, and one per connection; stop ends them and waits for them.
type listener struct {
	*process
	port    int
	socket  *net.TCPListener
	plain   *net.TCPListener // beside it, without TLS; nil: none
	http    *httpapi.Handler
	bin     *binproto.Handler
	waiters *httpapi.Signals
	pool    *sync.Pool

	stopping  chan struct{}
	accepting sync.WaitGroup // one per port
	serving   sync.WaitGroup // one per connection

	most int // connections

	mu        sync.Mutex // protects the fields below
	open      map[*conn]struct{}
	refused   int       // connections since refusedAt
	refusedAt time.Time // when the log told of a connection too many
}

// newSource returns what feeds the followers of the update log, nil without one.
func (p *process) newSource(done <-chan struct{}) binproto.Source {
	log := p.catalog.Log()
	if log == nil {
		return nil
	}
	return replication.NewSource(p.sourceOptions(log, done))
}

// resolveHost finds the IPv4 address of Config.Host.
func (p *process) resolveHost() error {
	if p.cfg.Host == "" {
		return nil
	}
	addr, err := net.ResolveIPAddr("ip4", p.cfg.Host)
	if err != nil {
		return err
	}
	p.host = addr.String()
	return nil
}

// listen opens the port and begins to accept connections. The error is the text of a log line.
func (p *process) listen(port int) (*listener, error) {
	if p.cfg.Timeout <= 0 {
		p.log.system("starting the server: expr=")
		return nil, errNoNetwork
	}
	p.log.system("starting the server: expr=%s:%d", p.host, port)
	socket, err := p.bind(port)
	if err != nil {
		return nil, err
	}
	l := p.newListener(socket)
	if err := l.listenPlain(); err != nil {
		socket.Close()
		return nil, err
	}
	p.log.system("server socket opened: expr=%s:%d timeout=%.1f", p.host, l.port, p.cfg.Timeout.Seconds())
	p.log.system("listening server socket started: fd=%d", descriptor(socket))
	l.accepting.Go(func() { l.accept(l.socket) })
	if l.plain != nil {
		l.accepting.Go(func() { l.accept(l.plain) })
	}
	return l, nil
}

// bind opens the listening socket, IPv4 only. Go sets SO_REUSEADDR and the largest backlog by itself, and TCP_NODELAY
// and keep-alive on accepted connections.
func (p *process) bind(port int) (*net.TCPListener, error) {
	if port > MaxPort && p.cfg.Port > MaxPort {
		return nil, fmt.Errorf("socket error: expr=%s:%d msg=invalid address expression", p.host, port)
	}
	addr := net.JoinHostPort(p.host, strconv.Itoa(port))
	socket, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", addr)
	if err != nil {
		return nil, fmt.Errorf("socket error: expr=%s:%d msg=bind failed", p.host, port)
	}
	return socket.(*net.TCPListener), nil
}

func (p *process) newListener(socket *net.TCPListener) *listener {
	port := int(netip.MustParseAddrPort(socket.Addr().String()).Port())
	waiters := httpapi.NewSignals()
	stopping := make(chan struct{})
	return &listener{
		process: p,
		port:    port,
		socket:  socket,
		waiters: waiters,
		http: httpapi.NewHandler(httpapi.Options{
			Catalog:  p.catalog.View(),
			Counts:   &p.counts,
			Signals:  waiters,
			Scripts:  p.procedures(),
			Follower: p.replica(),
			Claim:    p.claim(),
			Replicas: &p.replicas,
			Meters:   p.admin.meters.http,
			Pages:    p.pages,
			Logger:   p.log.Logger,
			Port:     port,
			CmdDir:   p.cfg.CmdDir,
			Report:   p.report,
		}),
		bin: binproto.NewHandler(binproto.Options{
			Catalog:  p.catalog.View(),
			Services: p.catalog.Services(),
			Counts:   &p.counts,
			Scripts:  p.binaryProcedures(),
			Source:   p.newSource(stopping),
			Meters:   p.admin.meters.bin,
			Logger:   p.log.Logger,
		}),
		most:     p.cfg.Limits.conns(),
		pool:     netio.NewPool(),
		stopping: stopping,
		open:     make(map[*conn]struct{}),
	}
}

// descriptor returns the number that the operating system gave the socket, -1 when it does not say.
func descriptor(socket *net.TCPListener) int {
	number := -1
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { number = int(fd) })
	}
	return number
}

// accept starts a goroutine for every connection until the listener stops.
func (l *listener) accept(from *net.TCPListener) {
	for {
		socket, err := from.AcceptTCP()
		if err == nil && l.full() {
			socket.Close()
			continue
		}
		if err == nil {
			c := l.newConn(socket, from == l.plain)
			l.serving.Go(c.run)
			continue
		}
		select {
		case <-l.stopping:
			return
		default:
			l.log.error("accepting a connection: %v", err)
		}
		select {
		case <-l.stopping:
		case <-time.After(acceptPause):
		}
	}
}

// stop ends the connections and closes the port. Requests being served are finished, waiting clients are told that
// their time is up, and a half received request has a short grace, however long the timeout is.
func (l *listener) stop() {
	l.log.system("server stopped")
	close(l.stopping)
	l.stopAccepting()
	l.log.system("finishing the server")
	l.waiters.Shutdown()
	slow := time.AfterFunc(l.cfg.Timeout, func() { l.each((*conn).cut); l.stopCalls() })
	stalled := time.AfterFunc(stopGrace, func() { l.each((*conn).cutFollower) })
	l.finishRunning()
	l.each(func(c *conn) { c.stop(stopGrace) })
	l.serving.Wait()
	slow.Stop()
	stalled.Stop()
	l.log.system("closing the server socket")
	l.sockets(func(s *net.TCPListener) { s.Close() })
}

// stopAccepting returns when no more connections come in. The ports stay taken.
func (l *listener) stopAccepting() {
	l.sockets(func(s *net.TCPListener) {
		if s.SetDeadline(time.Unix(1, 0)) != nil {
			s.Close()
		}
	})
	l.accepting.Wait()
}

// sockets calls do for the ports.
func (l *listener) sockets(do func(*net.TCPListener)) {
	do(l.socket)
	if l.plain != nil {
		do(l.plain)
	}
}

// finishRunning ends the connections with a request being served, and waits a moment for them: the log has tidier
// lines when their requests come before the ends of idle connections.
func (l *listener) finishRunning() {
	var running []*conn
	l.each(func(c *conn) {
		if c.busy.Load() {
			c.stop(stopGrace)
			running = append(running, c)
		}
	})
	late := time.After(stopRunning)
	for _, c := range running {
		select {
		case <-c.ended:
		case <-late:
			return
		}
	}
}

// each calls do for the open connections.
func (l *listener) each(do func(*conn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		do(c)
	}
}
