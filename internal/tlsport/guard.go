// Package tlsport lets the ports of the server speak TLS, and, if asked to, plaintext too while
// clients are being changed over.
//
//	g := tlsport.NewGuard(tlsport.Options{Files: files})
//	defer g.Close()
//	l = g.Listen(l)
//
// An accepted connection is a *Conn. Its user calls Open first, in the goroutine of the connection,
// never in the accept loop: Open does the handshake, with a time limit. Read calls Open for users
// that do not, such as net/http.
//
// The first byte shows whether a client speaks TLS: a handshake begins with 0x16, and no request of
// any protocol here does.
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
	failedLines      = 10 // log lines about handshakes at once, since their reasons differ
)

// Options of a Guard.
type Options struct {
	Files     *tlsfiles.Server
	Plaintext bool          // clients may also speak plaintext
	Handshake time.Duration // limit of a handshake; without Plaintext, from accept on; 0: 10 s
	Logger    *slog.Logger  // nil means silent
}

// Guard is shared by the ports of a server. It has their configuration and the connections with
// client certificates. It closes a connection whose certificate does not count any more.
//
// Its goroutine looks at the files every second. Close ends it and waits for it.
type Guard struct {
	opts   Options
	config *tls.Config
	quit   chan struct{}
	done   sync.WaitGroup
	plain  seldom // log lines about clients without TLS
	failed seldom // log lines about failed handshakes

	mu   sync.Mutex // protects open
	open map[*Conn]struct{}
}

// NewGuard starts the goroutine that looks at the files.
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

// Close ends the goroutine. Connections stay open. It is called once.
func (g *Guard) Close() {
	close(g.quit)
	g.done.Wait()
}

// Listen returns a listener whose connections are *Conn. l must be a TCP listener.
func (g *Guard) Listen(l net.Listener) net.Listener { return &listener{l.(*net.TCPListener), g} }

// listener has the methods of the TCP listener too, such as SetDeadline, which ends Accept while
// the port stays taken.
type listener struct {
	*net.TCPListener
	guard *Guard
}

// Accept returns a *Conn.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return l.guard.Wrap(c), nil
}

// watch looks for new content of the files, and for connections whose certificates the new content
// revokes.
func (g *Guard) watch() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	swept := g.opts.Files.Generation()
	for {
		select {
		case <-g.quit:
			return
		case <-tick.C:
		}
		g.opts.Files.Refresh()
		// Refresh is not alone: a handshake may have loaded new content since the last tick.
		if now := g.opts.Files.Generation(); now != swept {
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

// enter registers a connection with a client certificate. version is the generation of the files
// before the handshake: the certificate was verified by these files or by newer ones.
func (g *Guard) enter(c *Conn, version any) {
	if len(c.ConnectionState().PeerCertificates) == 0 {
		return
	}
	g.mu.Lock()
	g.open[c] = struct{}{}
	g.mu.Unlock()
	// A sweep for newer files may have run before the connection was registered, and missed it.
	if g.opts.Files.Generation() != version {
		g.check(c)
	}
}

func (g *Guard) leave(c *Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, c)
}
