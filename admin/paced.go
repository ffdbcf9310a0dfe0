package admin

import (
	"net/http"
	"sync/atomic"
	"time"
)

const (
	pieceSize = 64 << 10         // bytes of a reply that a client is sent at a time
	pieceTime = 30 * time.Second // for the client to take a piece
)

// paced is a reply whose client has pieceTime for each piece of it. Without a limit a client that
// does not read would hold the reply, and one of the few scrapes, for ever; a limit of the reply as
// a whole (http.Server.WriteTimeout) would end profiles and backups, which may take long.
type paced struct {
	http.ResponseWriter
	control *http.ResponseController
	own     atomic.Bool // the handler sets deadlines itself
}

func newPaced(w http.ResponseWriter) *paced {
	p := &paced{ResponseWriter: w, control: http.NewResponseController(w)}
	p.begin() // a reply without a body is not written by Write
	return p
}

func (p *paced) begin() {
	if !p.own.Load() {
		_ = p.control.SetWriteDeadline(time.Now().Add(pieceTime)) // fails if the client has gone: Write says so
	}
}

// Write implements io.Writer.
func (p *paced) Write(b []byte) (n int, err error) {
	for len(b) > pieceSize {
		p.begin()
		m, err := p.ResponseWriter.Write(b[:pieceSize])
		n += m
		if err != nil {
			return n, err
		}
		b = b[pieceSize:]
	}
	p.begin()
	m, err := p.ResponseWriter.Write(b)
	return n + m, err
}

// SetWriteDeadline is what http.ResponseController calls for a handler that sets deadlines of its
// own: they hold from now on.
func (p *paced) SetWriteDeadline(deadline time.Time) error {
	p.own.Store(true)
	return p.control.SetWriteDeadline(deadline)
}

// Unwrap gives http.ResponseController the other methods.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }
