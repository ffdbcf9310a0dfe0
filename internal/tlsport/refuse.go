package tlsport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	sniffSize   = 1024 // bytes of the beginning that are read
	refuseTime  = 500 * time.Millisecond
	refuseBytes = 64 << 10
	refusal     = "this port speaks TLS: use https\n"
)

// lineEvery is the shortest average time between two log lines of one kind.
const lineEvery = 10 * time.Second

var errLate = errors.New("it was not complete in time")

// seldom lets burst lines through at once, and then one after each lineEvery. It counts the lines
// that it leaves out.
type seldom struct {
	burst int

	mu   sync.Mutex // protects the fields below
	full time.Time  // when a whole burst is allowed again
	left int        // lines left out
}

// now reports whether a line may be written. also is a text to be added to the line: how many lines
// were left out before it.
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

// tellPlain logs a client without TLS.
func (g *Guard) tellPlain(peer net.Addr) {
	if also, write := g.plain.now(); write {
		g.opts.Logger.Warn(fmt.Sprintf("TLS: %s speaks plaintext to a port for TLS, closing: give the client TLS (ktremotemgr -tls, https://), "+
			"or let both in for a while (-tls allowed, -plain-port)%s", peer, also))
	}
}

// tellFailed logs a failed handshake.
func (g *Guard) tellFailed(peer net.Addr, err error) {
	// Not a failure: somebody has only looked whether the port is open.
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
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

// refuse answers a client without TLS in plain HTTP, if the client speaks HTTP.
func (c *Conn) refuse(head []byte) {
	c.guard.tellPlain(c.RemoteAddr())
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if !bytes.Contains(line, []byte(" HTTP/1.")) {
		return
	}
	limit := time.Now().Add(refuseTime)
	c.setLimit(limit)
	_ = c.socket.SetWriteDeadline(limit)
	_, err := fmt.Fprintf(c.socket, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s",
		len(refusal), refusal)
	if err == nil && c.socket.CloseWrite() == nil {
		// A close with unread bytes would destroy the reply.
		_, _ = io.CopyN(io.Discard, c.socket, refuseBytes)
	}
}
