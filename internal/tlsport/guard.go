package tlsport

import (
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"time"

	"gotycoon/internal/tlsfiles"
)

const (
	defaultHandshake = 10 * time.Second
	sweepEvery       = time.Second
	failedLines      = 10 // about handshakes at once: their reasons differ
)

// Options of a Guard.
type Options struct {
	Files     *tlsfiles.Server
	Plaintext bool          // clients may also do without TLS
	Handshake time.Duration // limit of a handshake, and of the wait for it; 0 means 10 seconds
	Logger    *slog.Logger  // nil means silent
}

// Guard is what the ports of a server have in common: their configuration, and the connections of clients with certificates, which it
// closes when those are let in no more.
//
// Its goroutine looks at the files every second; Close ends it and waits for it.
type Guard struct {
	opts   Options
	config *tls.Config
	quit   chan struct{}
	done   sync.WaitGroup
	plain  seldom // lines about clients without TLS
	failed seldom // lines about handshakes

	mu   sync.Mutex // protects open
	open map[*Conn]struct{}
}

// NewGuard begins to look after the files.
func NewGuard(o Options) *Guard {
	if o.Handshake <= 0 {
		o.Handshake = defaultHandshake
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Guard{opts: o, config: o.Files.Config(), quit: make(chan struct{}), open: map[*Conn]struct{}{}}
	g.plain.burst, g.failed.burst = 1, failedLines
	g.done.Go(g.watch)
	return g
}

// Close ends the goroutine. Connections live on. It is called once.
func (g *Guard) Close() {
	close(g.quit)
	g.done.Wait()
}

// Listen returns a listener whose connections are *Conn. l must be a TCP listener.
func (g *Guard) Listen(l net.Listener) net.Listener { return &listener{l, g} }

type listener struct {
	net.Listener
	guard *Guard
}

// Accept returns a *Conn.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.guard.Wrap(c.(*net.TCPConn)), nil
}

// watch looks for new content of the files, and for connections that it takes the right away from.
func (g *Guard) watch() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	swept := g.opts.Files.Version()
	for {
		select {
		case <-g.quit:
			return
		case <-tick.C:
		}
		g.opts.Files.Refresh()
		if now := g.opts.Files.Version(); now != swept { // also when a handshake has found the new content
			g.sweep()
			swept = now
		}
	}
}

// sweep closes the connections whose certificates do not count any more.
func (g *Guard) sweep() {
	g.mu.Lock()
	var all []*Conn
	for c := range g.open {
		all = append(all, c)
	}
	g.mu.Unlock()
	for _, c := range all {
		g.check(c)
	}
}

// check closes a connection whose certificate does not count any more.
func (g *Guard) check(c *Conn) {
	if err := g.opts.Files.Verify(c.ConnectionState().PeerCertificates); err != nil {
		g.opts.Logger.Warn("TLS: closing the connection of " + c.RemoteAddr().String() + ": " + err.Error())
		c.socket.Close()
	}
}

// enter begins to look after a connection with a certificate, which was checked against one version of the files.
func (g *Guard) enter(c *Conn, version any) {
	if len(c.ConnectionState().PeerCertificates) == 0 {
		return
	}
	g.mu.Lock()
	g.open[c] = struct{}{}
	g.mu.Unlock()
	if g.opts.Files.Version() != version { // the sweep may have come before
		g.check(c)
	}
}

func (g *Guard) leave(c *Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, c)
}
