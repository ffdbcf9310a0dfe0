// Package binproto serves the requests of the binary protocol: set_bulk, remove_bulk, get_bulk,
// play_script, replication, which it hands to a Source, and copy, which only gotycoon has. Package
// frame has their byte layouts.
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
	Services *db.DB          // can only be copied, by its number; nil: there is none
	Counts   *opcount.Counts // nil: nothing is counted
	Scripts  Scripts         // nil: the server has no script
	Source   Source          // nil: there is no update log to follow
	Meters   Meters          // count the requests; the zero value: nothing is counted
	Logger   *slog.Logger    // nil: silent. Info has a line for each request, Error database errors
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

// NewHandler returns a handler for the databases of o.Catalog.
func NewHandler(o Options) *Handler {
	o.setDefaults()
	return &Handler{opts: o}
}

// ServeOne answers the request that begins with the first buffered byte; the caller makes sure that
// there is one. keep reports whether the connection can be used for further requests. If not, the
// caller sends c.Out and closes the connection. peer is the client's address for the log, IP:PORT.
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

// next waits for the part of a request that decode reads, and takes it from the buffer. Slices in
// the part are valid until the following next.
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

// require waits until n bytes are buffered. It refuses them before they are read if there is no
// memory for them.
func require(c *netio.Conn, n int) error { return c.Need(n) }
