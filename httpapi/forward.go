package httpapi

import (
	"bytes"
	"errors"
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/client/wire/tsv"
	"gotycoon/httpapi/jsonrows"
	"gotycoon/httpapi/message"
	"gotycoon/internal/lenient"
)

// A server that is not the primary moves a connection to the primary at the first request that
// updates, see package internal/forward. The request is still in the buffer then: its head has been
// read, and its body at most waited for.

var errChanged = errors.New("a request with carriage returns within its lines cannot be forwarded")

// moveHead moves the connection if the head of the request says that the request belongs to the
// primary. over reports that the request has been answered, or the connection is over.
func (s *Session) moveHead() (over bool) {
	f := s.opts.Forward
	if !f.Away() {
		return false
	}
	s.moving = s.req.Method != message.GET && s.req.Method != message.HEAD
	p := (*procedure)(nil)
	if s.rpc {
		var query tsv.Rows
		name := tsv.DecodeURL(bytes.Clone(s.req.Path()[len(rpcPrefix):]))
		tsv.DecodeForm(&query, bytes.Clone(s.req.Query()))
		p = s.table.byName[string(name)]
		s.moving = p.updates() || s.req.Chunked() || s.lives(&query)
	}
	if limit := s.req.MaxLag(); len(limit) > 0 {
		s.moving = s.moving || f.Behind(maxLag(limit))
	}
	return s.moving && s.move(p)
}

// lives reports whether the input of a procedure has to do with what lives in the memory of one
// server: signals, and cursors, which any procedure can make. A client that says how old a reply
// may be knows of servers that are no primary, and may have cursors on them.
func (s *Session) lives(in *tsv.Rows) bool {
	return in.Has("WAIT") || in.Has("SIGNAL") || in.Has("CUR") && len(s.req.MaxLag()) == 0
}

// maxLag reads the value of X-Kt-Max-Lag, in seconds.
func maxLag(text []byte) time.Duration {
	switch limit := lenient.Float(text); {
	case !(limit > 0): // NaN too
		return 0
	case limit >= waitMost.Seconds():
		return waitMost
	default:
		return time.Duration(limit * float64(time.Second))
	}
}

// moveBody is moveHead for a request whose body has come.
func (s *Session) moveBody() (over bool) {
	if !s.rpc || s.moving || s.req.Chunked() || len(s.req.Body()) == 0 || !s.opts.Forward.Away() {
		return false
	}
	var in tsv.Rows
	if body := bytes.Clone(s.req.Body()); !sendsJSON(&s.req) {
		tsv.Decode(&in, body, s.req.ContentType())
	} else if jsonrows.Decode(&in, body, func([]byte) bool { return false }) != nil {
		return false // which is answered here
	}
	s.moving = s.lives(&in)
	return s.moving && s.move(nil)
}

// updates reports whether a procedure changes records.
func (p *procedure) updates() bool { return p != nil && p.need.rights&write != 0 && !p.local }

// move moves the connection, if the rules of this server allow such an update, p or a verb, to the
// client. It reports false if the request is to be served here after all.
func (s *Session) move(p *procedure) (over bool) {
	line := s.requestLine()
	if s.conn.Visitor != nil && !s.gate.allowed(s.mayMove(p)) {
		s.logRequest(line, s.gate.denied.Status())
		s.reply.denial(s.gate.denied, s.rpc, false)
		return true
	}
	if s.req.Changed {
		s.reply.text(statusBadRequest, false, plainText, errChanged.Error()+"\n")
		return true
	}
	over, err := s.opts.Forward.Move(s.conn, frame.MemberData, nil)
	if err != nil {
		s.logRequest(line, statusUnavailable)
		s.reply.unreached(err, s.rpc)
	}
	s.moving = over
	return over
}

// mayMove returns nil if the client may make an update of this kind here. The primary looks at its
// parameters.
func (s *Session) mayMove(p *procedure) error {
	if s.rpc {
		if p == nil {
			return nil
		}
		return s.conn.Visitor.Some(p.need.rights)
	}
	d, key := s.restTarget()
	if d == nil {
		return nil // the primary may have such a database
	}
	return s.gate.mayUse(d, key)
}
