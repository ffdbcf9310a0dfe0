package tlsport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// lineEvery is how often the log has a line about clients that do something wrong, in the long run.
const lineEvery = 10 * time.Second

var errLate = errors.New("it was not complete in time")

// seldom lets through so many lines at once, and then one after each lineEvery. It counts what is not written about.
type seldom struct {
	burst int

	mu   sync.Mutex // protects the fields below
	full time.Time  // when the burst is there again
	left int
}

// now reports whether a line shall be written, and what it adds about those that were not.
func (s *seldom) now() (also string, write bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.full.Before(now) {
		s.full = now
	}
	if s.full.Sub(now) > time.Duration(s.burst-1)*lineEvery {
		s.left++
		return "", false
	}
	if s.left > 0 {
		also = fmt.Sprintf(" (and %d more like this since the last line)", s.left)
	}
	s.full, s.left = s.full.Add(lineEvery), 0
	return also, true
}

// tellPlain writes about a client without TLS.
func (g *Guard) tellPlain(peer net.Addr) {
	if also, write := g.plain.now(); write {
		g.opts.Logger.Warn(fmt.Sprintf("TLS: %s speaks plaintext to a port for TLS, closing: give the client TLS (ktremotemgr -tls, https://), "+
			"or let both in for a while (-tls allowed, -plain-port)%s", peer, also))
	}
}

// tellFailed writes about a handshake that came to nothing.
func (g *Guard) tellFailed(peer net.Addr, err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) { // somebody looks whether the port is open
		g.opts.Logger.Debug(fmt.Sprintf("TLS: %s has left", peer))
		return
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errLate
	}
	if also, write := g.failed.now(); write {
		g.opts.Logger.Warn(fmt.Sprintf("TLS: no handshake with %s, closing: %v%s", peer, err, also))
	}
}
