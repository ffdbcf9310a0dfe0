// Package httpapi answers HTTP/1.x requests: remote procedure calls under /rpc/ and the REST verbs
// on everything else, as Kyoto Tycoon 0.9.56 does.
//
// The way of a request:
//
//	session.go      ServeOne reads a message (package message) and calls a procedure or a verb
//	procedures.go   the table of procedures: a row has everything there is to say about one
//	access.go       whether the client may do what the request asks
//	rows.go         a procedure's input, and its output
//	rpc_*.go        the procedures: rpcX is in the file of its family
//	rest.go         the verbs GET, HEAD, PUT and DELETE
//	reply.go        what is sent
//
// Names, keys and values are slices of the connection's buffer, decoded in place: a request for a
// small record costs no allocation. Replies are appended to netio.Conn.Out and leave together,
// after the updates that they acknowledge are safe.
package httpapi

import (
	"log/slog"
	"sync/atomic"
	"time"

	"gotycoon/db"
	"gotycoon/internal/browser"
	"gotycoon/internal/lenient"
	"gotycoon/internal/netio"
	"gotycoon/internal/opcount"
)

// Options of a Handler.
type Options struct {
	Catalog *db.View

	Counts   *opcount.Counts // nil: nobody reads the counts
	Signals  *Signals        // nil: a set of its own
	Scripts  Scripts         // nil: the server has no script
	Follower Follower        // nil: the server cannot replicate from a master
	Replicas Replicas        // the server's followers; nil: it has no update log
	Pages    *browser.Policy // which requests of browsers are served; nil: all
	Logger   *slog.Logger    // nil: silent. Info has a line per request, Error the database errors
	Meters   Meters          // where requests are counted; the zero value: nowhere

	// Claim makes the server the primary of the services; nil: it has no database for them.
	Claim func(force bool) error
	// Report adds the rows of report that this package does not know; may be nil.
	Report func(rows map[string]string)

	Port   int              // for the Location header
	CmdDir string           // directory of the commands of synchronize; empty means "."
	Now    func() time.Time // default time.Now
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
	table      []procedure
	procedures map[string]*procedure // rows of the table, by their names
	date       dateCache
}

// NewHandler returns a handler of requests to the databases of o.Catalog.
func NewHandler(o Options) *Handler {
	o.setDefaults()
	table := procedures // a copy
	h := &Handler{opts: o, table: table[:], procedures: make(map[string]*procedure, len(table))}
	for i := range h.table {
		p := &h.table[i]
		p.place = i
		h.procedures[p.name] = p
	}
	return h
}

// NewSession begins a session on a connection. peer is the client's address as the log shows it,
// IP:PORT.
func (h *Handler) NewSession(c *netio.Conn, peer string) *Session {
	s := &Session{h: h, c: c, heed: c.Heed(replyOpening)}
	s.in.Memory = c
	s.out.init(c)
	s.reply = replyWriter{h: h, c: c, req: &s.req}
	s.gate = gate{h: h, c: c, req: &s.req, in: &s.in, cursors: &s.cursors}
	s.cursors = cursorTable{c: c, heed: s.heed}
	s.journal = journal{h: h, c: c, peer: peer}
	return s
}

// database finds a database as clients name it: by its number if the text begins with a digit, else
// by its name. An empty text is number 0. It returns nil if there is no such database.
func (h *Handler) database(expr []byte) *db.DB {
	if len(expr) == 0 {
		return h.opts.Catalog.DB(0)
	}
	if n, ok := lenient.Natural(expr); ok {
		return h.opts.Catalog.DB(int(uint32(n)))
	}
	return h.opts.Catalog.Lookup(string(untilNUL(expr)))
}

// dateCache keeps the text of the Date header for the second it is true.
type dateCache struct {
	current atomic.Pointer[dateText]
}

type dateText struct {
	second int64
	text   []byte
}

func (d *dateCache) text(now time.Time) []byte {
	second := now.Unix()
	if c := d.current.Load(); c != nil && c.second == second {
		return c.text
	}
	c := &dateText{second, appendHTTPDate(nil, second)}
	d.current.Store(c)
	return c.text
}

// appendHTTPDate appends a date as HTTP has it, in GMT. Years above 9999 get a fifth digit.
func appendHTTPDate(dst []byte, second int64) []byte {
	return time.Unix(second, 0).UTC().AppendFormat(dst, "Mon, 02 Jan 2006 15:04:05 GMT")
}
