// Package binproto serves the requests of the binary protocol (reference: section 12): set_bulk, remove_bulk and
// get_bulk, the beginning of play_script, replication, which it hands on, and copy, which only gotycoon has. Their bytes are in package frame.
package binproto

import (
	"errors"
	"log/slog"
	"sync"

	"gotycoon/binproto/frame"
	"gotycoon/db"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/internal/opcount"
)

// Options of a Handler.
type Options struct {
	Catalog  *db.View
	Services *db.DB          // can be copied by its number, nothing else; nil: there is none
	Counts   *opcount.Counts // nil: counted for nobody
	Scripts  Scripts         // nil: the server has no script
	Source   Source          // nil: there is no update log to follow
	Meters   Meters          // where requests are counted; the zero value: nowhere
	Logger   *slog.Logger    // nil: silent. Info has a line per request, Error the database errors
}

func (o *Options) setDefaults() {
	if o.Counts == nil {
		o.Counts = new(opcount.Counts)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Handler serves requests to the databases of one server. It may be used by many goroutines.
type Handler struct {
	opts  Options
	bulks sync.Pool // of *bulk
}

// NewHandler returns a handler of requests to the databases of o.Catalog.
func NewHandler(o Options) *Handler {
	o.setDefaults()
	return &Handler{opts: o}
}

// ServeOne answers the request that begins with the first buffered byte, of which there must be one, and reports
// whether the connection may be used further. When it may not, the caller sends what is in c.Out and closes it.
// peer is the client's address as the log shows it, IP:PORT.
func (h *Handler) ServeOne(c *netio.Conn, peer string) (keep bool) {
	magic := frame.Magic(c.Buffered()[0])
	if c.Visitor != nil && !h.admit(c, magic) {
		h.logRequest(peer, magic, false)
		return false
	}
	h.longRequest(c, magic)
	var detail metrics.Detail
	switch magic {
	case frame.SetBulk, frame.RemoveBulk, frame.GetBulk:
		keep, detail = h.serveBulk(c)
	case frame.PlayScript:
		keep = h.servePlayScript(c)
	case frame.Replication:
		keep = h.serveReplication(c, peer)
	case frame.Copy:
		keep = h.serveCopy(c, peer)
	}
	h.logRequest(peer, magic, keep)
	h.measure(c, magic, keep, detail)
	return keep
}

// next waits for the part that decode reads and marks it as used. Its slices are valid until the next one.
func next[T any](c *netio.Conn, decode func([]byte) (T, int, error), part *T) error {
	for {
		v, n, err := decode(c.Buffered())
		if err == nil {
			*part = v
			c.Advance(n)
			return nil
		}
		if !errors.Is(err, frame.ErrShort) {
			return err
		}
		if err := require(c, n); err != nil {
			return err
		}
	}
}

// require waits until n bytes are buffered. What there can be no memory for is refused before it is read.
func require(c *netio.Conn, n int) error { return c.Need(n) }
