package httpapi

import (
	"log/slog"
	"time"

	"gotycoon/db"
	"gotycoon/internal/browser"
	"gotycoon/internal/netio"
	"gotycoon/internal/opcount"
)

// Options of a Handler.
type Options struct {
	Catalog  *db.View
	Counts   *opcount.Counts              // nil: counted for nobody
	Signals  *Signals                     // nil: a set of its own
	Scripts  Scripts                      // nil: the server has no script
	Follower Follower                     // nil: the server cannot replicate from a master
	Claim    func(force bool) error       // makes the server the primary of the services; nil: it has no database for them
	Replicas Replicas                     // the server's followers; nil: it has no update log
	Pages    *browser.Policy              // which requests of browsers are served; nil: all
	Logger   *slog.Logger                 // nil: silent. Info has a line per request, Error the database errors
	Meters   Meters                       // where requests are counted; the zero value: nowhere
	Port     int                          // for the Location header
	CmdDir   string                       // directory of the commands of synchronize; empty means "."
	Report   func(rows map[string]string) // adds the rows of report that this package does not know; may be nil
	Now      func() time.Time             // default time.Now
}

func (o *Options) setDefaults() {
	if o.Counts == nil {
		o.Counts = new(opcount.Counts)
	}
	if o.Signals == nil {
		o.Signals = NewSignals()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CmdDir == "" {
		o.CmdDir = "."
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Handler is what all sessions of a server share.
type Handler struct {
	opts       Options
	procedures map[string]*procedure
	places     map[*procedure]int // in their table
	date       dateCache
}

// NewHandler returns a handler of requests to the databases of o.Catalog.
func NewHandler(o Options) *Handler {
	o.setDefaults()
	h := &Handler{opts: o, procedures: procedureMap(), places: map[*procedure]int{}}
	for i := range procedures {
		h.places[&procedures[i]] = i
	}
	return h
}

// NewSession begins a session on a connection. peer is the client's address as the log shows it, IP:PORT.
func (h *Handler) NewSession(c *netio.Conn, peer string) *Session {
	s := &Session{h: h, c: c, peer: peer, heed: c.Heed(replyOpening)}
	s.in.Memory, s.out.Memory = c, c
	return s
}
