// Package httpapi answers HTTP/1.x requests: remote procedure calls under /rpc/ and the REST verbs
// on everything else, as Kyoto Tycoon 0.9.56 does.
//
// The way of a request:
//
//	serve.go        ServeOne reads a message (package message), finds the procedure in the table,
//	                calls it, and notes the request in log and metrics
//	rpc_*.go        the procedures: rpcX is in the file of its family
//	call.go         what a procedure is given: parameters, database, buffers
//	reply.go        what is sent
//
// Beside the way:
//
//	procedures.go   the table of procedures: a row has everything there is to say about one
//	rows.go         what the rows of input and output may hold
//	reference.go    the same for people and programs; openapi.go, welcome.go
//	access.go       whether the client may do what the request asks
//	rest.go         the verbs GET, HEAD, PUT and DELETE
//	output.go       the rows that a procedure answers
//	json.go         who gets JSON (package jsonrows) in place of the tables of package tsv
//	errors.go       failures and their statuses
//	session.go      a session, and what few of its requests need
//	watch.go        the stream of a watch, which rpc_watch.go has begun (watching.go)
//	watchers.go     how many watches there may be
//	options.go      what the server hands over
//
// No file needs another one in a ring. From the bottom up: watchers, options, rows and output;
// call; errors, json and reply; the procedures; their table, and access; session, rest, serve;
// handler, which hands the table down.
//
// Names, keys and values are slices of the connection's buffer, decoded in place: a request for a
// small record costs no allocation. Replies are appended to netio.Conn.Out and leave together,
// after the updates that they acknowledge are safe.
package httpapi

import (
	"gotycoon/httpapi/message"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
)

// Handler is what all sessions of a server share.
type Handler struct {
	opts  Options
	table table
	date  dateCache
}

// NewHandler returns a handler of requests to the databases of o.Catalog.
func NewHandler(o Options) *Handler {
	o.setDefaults()
	rows := procedures // a copy
	h := &Handler{opts: o, table: table{rows[:], make(map[string]*procedure, len(rows))}}
	for i := range h.table.rows {
		p := &h.table.rows[i]
		p.place = i
		h.table.byName[p.name] = p
	}
	return h
}

// NewSession begins a session on a connection. peer is the client's address as the log shows it,
// IP:PORT.
func (h *Handler) NewSession(c *netio.Conn, peer string) *Session {
	s := &Session{peer: peer, call: call{conn: c, opts: &h.opts, table: &h.table, heed: c.Heed(replyOpening)}}
	s.in.Memory = c
	s.out.c, s.out.rows.Memory = c, c
	s.reply = replyWriter{c: c, req: &s.req, now: h.opts.Now, date: &h.date}
	s.gate.call = &s.call
	return s
}

// NewMeters returns counters of all procedures, by their names, and of the REST verbs.
func NewMeters() Meters {
	names := make([]string, len(procedures), len(procedures)+1)
	for i := range procedures {
		names[i] = procedures[i].name
	}
	verbs := make([]string, message.Methods)
	for m := range message.Methods {
		verbs[m] = m.String()
	}
	return Meters{
		RPC:  metrics.NewProtocol("rpc", append(names, "unknown")...),
		REST: metrics.NewProtocol("rest", verbs...),
	}
}
