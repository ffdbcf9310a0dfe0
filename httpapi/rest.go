package httpapi

import (
	"bytes"
	"errors"
	"strconv"

	"gotycoon/client/wire/tsv"
	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/httpapi/date"
	"gotycoon/httpapi/message"
)

// serveREST answers GET, HEAD, PUT and DELETE of one record.
func (s *Session) serveREST() (status int) {
	d, key := s.restTarget()
	s.db, s.key = d, key
	if d == nil {
		err := s.noDatabase()
		status := statusOf(nil, err)
		s.reply.text(status, s.req.KeepAlive, "", err.Error()+"\n")
		return status
	}
	if s.conn.Visitor != nil {
		if !s.gate.allowed(s.gate.mayUse(d, key)) {
			return s.replyDenied()
		}
		s.conn.Owed.Rights = &s.gate
	}
	if err := s.wantReplicas(s.req.Replicas()); err != nil {
		return s.replyError(err)
	}
	if err := s.askPosition(s.req.Position()); errors.Is(err, errBroken) {
		return statusBroken
	} else if err != nil {
		return s.replyError(err)
	}
	switch s.req.Method {
	case message.GET:
		return s.restGet(d, key)
	case message.HEAD:
		return s.restHead(d, key)
	case message.PUT:
		return s.restPut(d, key)
	case message.DELETE:
		return s.restDelete(d, key)
	}
	return s.reply.empty(statusNotImplemented)
}

// restTarget finds database and key in the path. They are decoded in a copy, since Location shows
// the target as it came.
func (s *Session) restTarget() (d *db.DB, key []byte) {
	s.text = append(s.text[:0], s.req.Path()...)
	expr, key := splitPath(s.text)
	return s.database(tsv.DecodeURL(expr)), tsv.DecodeURL(key)
}

// splitPath cuts /DB/KEY or /KEY. A slash before the key is dropped once more.
func splitPath(path []byte) (expr, key []byte) {
	path = bytes.TrimPrefix(path, []byte("/"))
	i := bytes.IndexByte(path, '/')
	if i < 0 {
		return nil, path
	}
	return path[:i:i], bytes.TrimPrefix(path[i+1:], []byte("/"))
}

func (s *Session) restGet(d *db.DB, key []byte) int {
	value, xt, err := d.Get(&s.conn.Owed, s.out.value[:0], key)
	s.count(tallyGet, err)
	if err != nil {
		return s.replyMissing(err)
	}
	s.out.keep(value)
	s.reply.recordHead(len(value), xt)
	if len(value) < maxUnsent {
		s.conn.Out = append(s.conn.Out, value...)
	} else if s.conn.Send(value) != nil {
		return statusBroken
	}
	return statusOK
}

func (s *Session) restHead(d *db.DB, key []byte) int {
	size, xt, err := d.Check(&s.conn.Owed, key)
	s.count(tallyGet, err)
	if err != nil {
		return s.replyMissing(err)
	}
	s.reply.recordHead(size, xt)
	return statusOK
}

func (s *Session) restPut(d *db.DB, key []byte) int {
	value, mode, xt := s.req.Body(), s.req.Mode(), record.Never
	if at := date.Parse(s.req.Expiry()); at > 0 && at < record.MaxXT {
		xt = record.XT(-at)
	}
	large := len(value) >= largeValue
	if large {
		value = s.req.BodyWithRoom(record.Headroom)
	}
	owed := &s.conn.Owed
	var err error
	switch {
	case large && message.EqualFold(mode, "add"):
		err = d.StoreInPlace(owed, key, value, xt, record.WhenNew)
	case large && message.EqualFold(mode, "replace"):
		err = d.StoreInPlace(owed, key, value, xt, record.WhenThere)
	case large:
		err = d.StoreInPlace(owed, key, value, xt, record.Anyway)
	case message.EqualFold(mode, "add"):
		err = d.Add(owed, key, value, xt)
	case message.EqualFold(mode, "replace"):
		err = d.Replace(owed, key, value, xt)
	default:
		err = d.Set(owed, key, value, xt)
	}
	s.count(tallySet, err)
	if err != nil {
		return s.replyError(err)
	}
	s.reply.head(statusCreated, s.req.KeepAlive, 0)
	s.appendLocation()
	s.reply.endHead()
	return statusCreated
}

func (s *Session) restDelete(d *db.DB, key []byte) int {
	err := d.Remove(&s.conn.Owed, key)
	s.count(tallyRemove, err)
	if err != nil {
		return s.replyError(err)
	}
	return s.reply.empty(statusNoContent)
}

// replyMissing answers a GET or HEAD that failed, mostly because there is no record.
func (s *Session) replyMissing(err error) int {
	if s.gate.denied == nil && restStatus(s.req.Method, err) == statusNotFound {
		if status, ok := s.welcome(); ok {
			return status
		}
	}
	return s.replyError(err)
}

// replyError answers a verb that failed. The original's reply has a header only; a server without
// space, which the original does not know, adds a line for the person who reads the reply.
func (s *Session) replyError(err error) int {
	if s.gate.denied != nil { // since the request was let in
		return s.replyDenied()
	}
	if noMemory(err) {
		return s.reply.noMemory(err)
	}
	status := restStatus(s.req.Method, err)
	s.logFailure(status, err)
	text := s.out.errorText(err)
	var body []byte
	if status == statusNoSpace || status == statusUnavailable {
		body = append(append(body, text...), '\n')
	}
	s.reply.head(status, s.req.KeepAlive, len(body))
	s.conn.Out = append(s.conn.Out, "X-Kt-Error: "...)
	s.conn.Out = appendBlankless(s.conn.Out, text)
	s.conn.Out = append(s.conn.Out, crlf...)
	if len(body) > 0 {
		s.reply.header("Content-Type: ", plainText)
	}
	s.reply.endHead()
	s.conn.Out = append(s.conn.Out, body...)
	return status
}

// appendLocation appends the URL of the record as the original gives it: this host, whatever it is
// called, and the target as it came.
func (s *Session) appendLocation() {
	out := append(s.conn.Out, "Location: http://localhost"...)
	if s.opts.Port != 80 {
		out = strconv.AppendInt(append(out, ':'), int64(s.opts.Port), 10)
	}
	out = appendBlankless(out, s.req.Target())
	s.conn.Out = append(out, crlf...)
}

// appendBlankless appends a header value with its runs of blanks and control bytes turned into
// single spaces.
func appendBlankless(dst, value []byte) []byte {
	from := len(dst)
	for i, c := range value {
		switch {
		case c > ' ' && c != 0x7f:
			dst = append(dst, c)
		case len(dst) > from && i+1 < len(value) && value[i+1] > ' ':
			dst = append(dst, ' ')
		}
	}
	return dst
}
