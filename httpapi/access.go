package httpapi

import (
	"errors"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/httpapi/message"
	"gotycoon/internal/lenient"
)

// about is what a procedure's rights are asked for.
type about byte

const (
	aboutNothing  about = iota // anybody who may do anything
	aboutKey                   // the parameter key
	aboutKeys                  // the keys of a bulk procedure
	aboutPrefix                // the parameter prefix
	aboutDatabase              // the whole database
	aboutFile                  // the same; with a command the whole server, and Admin
	aboutCursor                // the whole database of the cursor
	aboutServer                // all databases, and what belongs to none
)

// right is what a procedure needs.
type right struct {
	rights access.Rights
	about  about
}

// procedureRights has a row for every procedure of the table. One that both tells and changes something needs both rights.
var procedureRights = map[string]right{
	"add":              {access.Write, aboutKey},
	"append":           {access.Write, aboutKey},
	"cas":              {access.Read | access.Write, aboutKey},
	"check":            {access.Read, aboutKey},
	"checksum":         {access.Read, aboutDatabase},
	"clear":            {access.Write, aboutDatabase},
	"cur_delete":       {0, aboutNothing},
	"cur_get":          {access.Read, aboutCursor},
	"cur_get_key":      {access.Read, aboutCursor},
	"cur_get_value":    {access.Read, aboutCursor},
	"cur_jump":         {access.Read, aboutCursor},
	"cur_jump_back":    {access.Read, aboutCursor},
	"cur_remove":       {access.Write, aboutCursor},
	"cur_seize":        {access.Read | access.Write, aboutCursor},
	"cur_set_value":    {access.Write, aboutCursor},
	"cur_step":         {access.Read, aboutCursor},
	"cur_step_back":    {access.Read, aboutCursor},
	"echo":             {0, aboutNothing},
	"get":              {access.Read, aboutKey},
	"get_bulk":         {access.Read, aboutKeys},
	"increment":        {access.Read | access.Write, aboutKey},
	"increment_double": {access.Read | access.Write, aboutKey},
	"match_prefix":     {access.Read, aboutPrefix},
	"match_regex":      {access.Read, aboutDatabase},
	"match_similar":    {access.Read, aboutDatabase},
	"play_script":      {access.Read | access.Write, aboutServer}, // a script may do what it likes
	"remove":           {access.Write, aboutKey},
	"remove_bulk":      {access.Write, aboutKeys},
	"replace":          {access.Write, aboutKey},
	"report":           {access.Read, aboutServer},
	"replicas":         {access.Read, aboutServer},
	"seize":            {access.Read | access.Write, aboutKey},
	"set":              {access.Write, aboutKey},
	"set_bulk":         {access.Write, aboutKeys},
	"status":           {access.Read, aboutDatabase},
	"synchronize":      {access.Write, aboutFile},
	"tune_replication": {access.Admin, aboutServer},
	"ulog_list":        {access.Replicate, aboutServer},
	"ulog_reach":       {access.Replicate, aboutServer},
	"ulog_remove":      {access.Admin, aboutServer},
	"vacuum":           {access.Write, aboutDatabase},
	"void":             {0, aboutNothing},
}

// enter reads the credentials of the request whose head has arrived, and tells whether the client may do anything at all. Nothing more
// is read from one who may not.
func (s *Session) enter() bool {
	v := s.c.Visitor
	err := v.Present(s.req.Credentials())
	if err == nil {
		err = v.Enter()
	}
	return s.allowed(err)
}

// allowed keeps the reason of a refusal for the reply.
func (s *Session) allowed(err error) bool {
	s.denied = nil
	if err != nil && !errors.As(err, &s.denied) {
		s.denied = &access.Denied{Reason: err.Error()}
	}
	return err == nil
}

// renew looks at the credentials again when the rules have changed since the head of the request arrived: its body may have taken long,
// and a signal even longer.
func (s *Session) renew() error {
	if v := s.c.Visitor; v.Outdated() {
		return v.Present(s.req.Credentials())
	}
	return nil
}

// owner is a session as updates see it: whether its client may still do what it has asked for.
type owner struct{ *Session }

// Current implements db.Rights.
func (o owner) Current() bool { return o.denied == nil && o.c.Visitor.Current() }

// Renew implements db.Rights. A refusal is the reply, whatever the procedure makes of the error, and holds to the end of the request.
func (o owner) Renew() error {
	s := o.Session
	if s.denied != nil {
		return s.denied
	}
	if p := s.call.procedure; s.rpc {
		s.allowed(s.permit(p))
	} else {
		s.mayREST(s.call.db, s.call.key)
	}
	if s.denied != nil {
		return s.denied
	}
	return nil
}

// onlyTells reports whether a procedure reads and changes nothing: when the right to read has gone before its reply, the reply can be
// withheld. One that has changed something says so.
func onlyTells(p *procedure) bool { return p != nil && procedureRights[p.name].rights == access.Read }

// permit returns nil when the client may call p, nil for an unknown procedure, with the parameters that it has sent.
func (s *Session) permit(p *procedure) error {
	v := s.c.Visitor
	if err := s.renew(); err != nil {
		return err
	}
	if err := s.permitSignals(v); err != nil || p == nil {
		return err
	}
	need, known := procedureRights[p.name]
	if !known {
		need = right{access.Admin, aboutServer}
	}
	switch need.about {
	case aboutNothing:
		return nil
	case aboutServer:
		return v.Server(need.rights)
	}
	d := s.target(need.about)
	if d == nil { // is told so
		return nil
	}
	return s.permitDatabase(v, need, d)
}

// permitSignals asks for the right to wait for a signal, and to send one. Signals are the same for all databases.
func (s *Session) permitSignals(v *access.Visitor) error {
	var need access.Rights
	if s.in.Has("WAIT") {
		need |= access.Read
	}
	if s.in.Has("SIGNAL") {
		need |= access.Write
	}
	if need == 0 {
		return nil
	}
	return v.Server(need)
}

// target returns the database that the call is about, which for a cursor is where that is.
func (s *Session) target(what about) *db.DB {
	if what == aboutCursor {
		text, _ := s.in.Get("CUR")
		if id, ok := lenient.Natural(text); ok && s.cursors[id] != nil {
			return s.cursors[id].db
		}
	}
	expr, _ := s.in.Get("DB")
	return s.h.database(expr)
}

func (s *Session) permitDatabase(v *access.Visitor, need right, d *db.DB) error {
	switch need.about {
	case aboutKey:
		return s.permitParameter(v, need.rights, d, "key")
	case aboutPrefix:
		return s.permitParameter(v, need.rights, d, "prefix")
	case aboutKeys:
		for row := range s.in.All() {
			if len(row.Name) > 0 && row.Name[0] == '_' {
				if err := v.Key(need.rights, d, row.Name[1:]); err != nil {
					return err
				}
			}
		}
		return nil
	case aboutFile:
		if name, _ := s.in.Get("command"); len(name) > 0 {
			return v.Server(access.Admin)
		}
	}
	return v.Database(need.rights, d)
}

// permitParameter asks for a key, or for all keys with a prefix. Without the parameter the call fails anyway.
func (s *Session) permitParameter(v *access.Visitor, need access.Rights, d *db.DB, name string) error {
	text, ok := s.in.Get(name)
	if !ok {
		return nil
	}
	return v.Key(need, d, text)
}

// mayREST tells whether the client may do what a REST request asks.
func (s *Session) mayREST(d *db.DB, key []byte) bool {
	if err := s.renew(); err != nil {
		return s.allowed(err)
	}
	switch s.req.Method {
	case message.GET, message.HEAD:
		return s.allowed(s.c.Visitor.Key(access.Read, d, key))
	case message.PUT, message.DELETE:
		return s.allowed(s.c.Visitor.Key(access.Write, d, key))
	}
	return true // is not implemented
}

// replyDenied answers a REST request that is refused.
func (s *Session) replyDenied() int {
	s.appendDenied(s.req.KeepAlive)
	return s.denied.Status()
}

// refuseDenied answers a request of a client who may do nothing. The connection ends with it.
func (s *Session) refuseDenied() {
	s.logRequest(s.requestLine(), s.denied.Status())
	s.appendDenied(false)
}

// appendDenied appends the reply: for a procedure a table with the reason, as for every error, else a line of text.
func (s *Session) appendDenied(keepAlive bool) {
	text := s.denied.Error() + "\n"
	kind := "text/plain"
	if s.rpc {
		text, kind = "ERROR\t"+text, "text/tab-separated-values"
	}
	length := len(text)
	if s.req.Method == message.HEAD {
		text, length = "", noLength
	}
	s.appendHead(s.denied.Status(), keepAlive, length)
	s.appendHeader("Content-Type: ", kind)
	if s.denied.Unknown {
		s.appendHeader("WWW-Authenticate: ", access.Challenge)
	}
	s.endHead()
	s.c.Out = append(s.c.Out, text...)
}
