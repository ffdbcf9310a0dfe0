package httpapi

import (
	"bytes"
	"errors"

	"gotycoon/access"
	"gotycoon/client/wire/tsv"
	"gotycoon/db"
	"gotycoon/httpapi/message"
	"gotycoon/internal/browser"
	"gotycoon/internal/lenient"
)

// gate asks the access rules whether the client may do what its request asks. The session calls the
// gate
//
//   - when the head of a request has arrived, whether the client may do anything at all (enter);
//   - when the input is known, whether the client may do this (mayCall, mayUse).
//
// The database calls the gate again before an update (owed.Rights): a body may take long to arrive,
// a signal even longer, and the rules may change meanwhile.
//
// A refusal holds to the end of the request. The reply is the refusal, whatever a procedure makes
// of the error.
//
// Where there are no access rules, only requests of browsers come here (wantedByUser).
type gate struct {
	call *call

	denied *access.Denied // why the request is refused; nil: it is not

	procedure *procedure // that is called; nil: there is none of the name
	verb      bool       // the request is a verb, about this record
	db        *db.DB
	key       []byte
}

// forget prepares the gate for the next request.
func (g *gate) forget() {
	g.denied, g.procedure, g.verb, g.db, g.key = nil, nil, false, nil, nil
}

// allowed reports whether err is nil, and else keeps it as the reason of a refusal.
func (g *gate) allowed(err error) bool {
	g.denied = nil
	if err != nil && !errors.As(err, &g.denied) {
		g.denied = &access.Denied{Reason: err.Error()}
	}
	return err == nil
}

// enter reads the credentials of the request whose head has arrived, and reports whether the client
// may do anything at all.
func (g *gate) enter() bool {
	v := g.call.conn.Visitor
	err := v.Present(g.call.req.Credentials())
	if err == nil {
		err = v.Enter()
	}
	return g.allowed(err)
}

// admit reports whether the client may call a procedure, nil for an unknown one, with its input.
// From then on the database asks before each update whether the client still may.
func (g *gate) admit(p *procedure) bool {
	g.procedure = p
	if !g.allowed(g.mayCall()) {
		return false
	}
	g.call.conn.Owed.Rights = g
	return true
}

// overtaken reports whether the client has lost its right since admit. If the procedure only tells,
// the rules are looked at once more, so that what has been found is not told any more.
func (g *gate) overtaken() bool {
	if g.denied == nil && g.procedure.onlyTells() && !g.call.conn.Visitor.Current() {
		_ = g.Renew() // sets denied
	}
	return g.denied != nil
}

// Current implements owed.Rights.
func (g *gate) Current() bool { return g.denied == nil && g.call.conn.Visitor.Current() }

// Renew implements owed.Rights.
func (g *gate) Renew() error {
	if g.denied == nil {
		if g.verb {
			g.allowed(g.mayUse(g.db, g.key))
		} else {
			g.allowed(g.mayCall())
		}
	}
	if g.denied != nil {
		return g.denied
	}
	return nil
}

// present shows the credentials again if the rules have changed since they were shown.
func (g *gate) present() error {
	if v := g.call.conn.Visitor; v.Outdated() {
		return v.Present(g.call.req.Credentials())
	}
	return nil
}

// mayUse returns nil if the client may do what the verb of the request does to a record.
func (g *gate) mayUse(d *db.DB, key []byte) error {
	g.verb, g.db, g.key = true, d, key
	if err := g.present(); err != nil {
		return err
	}
	switch g.call.req.Method {
	case message.GET, message.HEAD:
		return g.call.conn.Visitor.Key(access.Read, d, key)
	case message.PUT, message.DELETE:
		return g.call.conn.Visitor.Key(access.Write, d, key)
	}
	return nil // is not implemented
}

// mayCall returns nil if the client may call the procedure, if there is one, with its input. Where
// a database or parameter is missing the call fails anyway, and says so.
func (g *gate) mayCall() error {
	if err := g.present(); err != nil {
		return err
	}
	v, p := g.call.conn.Visitor, g.procedure
	if err := g.maySignal(); err != nil || p == nil {
		return err
	}
	need := p.need
	switch need.about {
	case aboutNothing:
		return nil
	case aboutServer:
		return v.Server(need.rights)
	}
	d := g.target(need.about)
	if d == nil {
		return nil
	}
	switch need.about {
	case aboutKey:
		if key, ok := g.call.in.Get("key"); ok {
			return v.Key(need.rights, d, key)
		}
		return nil
	case aboutPrefix:
		if prefix, ok := g.call.in.Get("prefix"); ok {
			return v.Key(need.rights, d, prefix)
		}
		return nil
	case aboutPart:
		prefix, _ := g.call.in.Get("prefix")
		return v.Key(need.rights, d, prefix)
	case aboutKeys:
		for row := range g.call.in.All() {
			if len(row.Name) > 0 && row.Name[0] == '_' {
				if err := v.Key(need.rights, d, row.Name[1:]); err != nil {
					return err
				}
			}
		}
		return nil
	case aboutFile:
		if name, _ := g.call.in.Get("command"); len(name) > 0 {
			return v.Server(access.Admin)
		}
	}
	return v.Database(need.rights, d)
}

// maySignal asks for the right to wait for a signal, and to send one. Signals are the same for all
// databases.
func (g *gate) maySignal() error {
	var need access.Rights
	if g.call.in.Has("WAIT") {
		need |= access.Read
	}
	if g.call.in.Has("SIGNAL") {
		need |= access.Write
	}
	if need == 0 {
		return nil
	}
	return g.call.conn.Visitor.Server(need)
}

// target returns the database that the call is about: for a cursor, the database of the cursor.
func (g *gate) target(what about) *db.DB {
	if what == aboutCursor {
		text, _ := g.call.in.Get("CUR")
		if id, ok := lenient.Natural(text); ok && g.call.cursors[id] != nil {
			return g.call.cursors[id].db
		}
	}
	expr, _ := g.call.in.Get("DB")
	return g.call.database(expr)
}

// wantedByUser reports whether a request may be served that a browser may have sent: not if a page
// makes it without its user's intent.
func (g *gate) wantedByUser(rpc bool) bool {
	if g.call.opts.Pages == nil {
		return true
	}
	marks := g.call.req.Marks()
	about := browser.About{Changes: g.changes(rpc), Proven: g.call.conn.Secure() || g.call.conn.Visitor.Known()}
	if err := g.call.opts.Pages.Check(&marks, about); err != nil {
		g.denied = &access.Denied{Reason: err.Error()}
		return false
	}
	return true
}

// ofBrowser reports whether a browser has sent the request, and its replies must not be taken for
// pages. Who lets browsers do everything gets the original's replies.
func (g *gate) ofBrowser() bool {
	p := g.call.opts.Pages
	if p == nil || p.All() {
		return false
	}
	marks := g.call.req.Marks()
	return marks.Marked()
}

// changes reports whether the request may change something, as far as its head shows.
func (g *gate) changes(rpc bool) bool {
	if !rpc {
		return g.call.req.Method != message.GET && g.call.req.Method != message.HEAD
	}
	var query tsv.Rows
	name := tsv.DecodeURL(bytes.Clone(g.call.req.Path()[len(rpcPrefix):]))
	tsv.DecodeForm(&query, bytes.Clone(g.call.req.Query()))
	p := g.call.table.byName[string(name)]
	return p != nil && p.need.rights&^access.Read != 0 || query.Has("SIGNAL")
}

// onlyTells reports whether a procedure reads and changes nothing: if the right to read has gone
// before its reply, the reply can be withheld. A procedure that has changed something says so.
func (p *procedure) onlyTells() bool { return p != nil && p.need.rights == access.Read }
