package httpapi

import (
	"bytes"
	"strconv"

	"gotycoon/db"
	"gotycoon/httpapi/date"
	"gotycoon/httpapi/message"
	"gotycoon/httpapi/tsv"
)

// serveREST answers GET, HEAD, PUT and DELETE of one record (section 11).
func (s *Session) serveREST() (status int) {
	d, key := s.restTarget()
	s.call.db, s.call.key = d, key
	if d == nil {
		return s.replyNoDatabase()
	}
	if s.c.Visitor != nil {
		if !s.mayREST(d, key) {
			return s.replyDenied()
		}
		s.c.Owed.Rights = owner{s}
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
	return s.replyEmpty(statusNotImplemented)
}

// restTarget finds database and key in the path. They are decoded in a copy, since Location shows the target as it
// came.
func (s *Session) restTarget() (d *db.DB, key []byte) {
	s.text = append(s.text[:0], s.req.Path()...)
	expr, key := splitPath(s.text)
	return s.h.database(tsv.DecodeURL(expr)), tsv.DecodeURL(key)
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
	value, xt, err := d.Get(&s.c.Owed, s.value[:0], key)
	s.count(tallyGet, err)
	if err != nil {
		return s.replyError(err)
	}
	s.keepValue(value)
	s.appendHead(statusOK, s.req.KeepAlive, len(value))
	s.appendXT(xt)
	s.endHead()
	if len(value) < maxUnsent {
		s.c.Out = append(s.c.Out, value...)
	} else if s.c.Send(value) != nil {
		return statusBroken
	}
	return statusOK
}

func (s *Session) restHead(d *db.DB, key []byte) int {
	size, xt, err := d.Check(&s.c.Owed, key)
	s.count(tallyGet, err)
	if err != nil {
		return s.replyError(err)
	}
	s.appendHead(statusOK, s.req.KeepAlive, size)
	s.appendXT(xt)
	s.endHead()
	return statusOK
}

func (s *Session) restPut(d *db.DB, key []byte) int {
	value, xt := s.req.Body(), s.restXT()
	mode := s.req.Mode()
	var err error
	switch {
	case len(value) >= largeValue && message.EqualFold(mode, "add"):
		err = d.AddInPlace(&s.c.Owed, key, s.largeBody(), xt)
	case len(value) >= largeValue && message.EqualFold(mode, "replace"):
		err = d.ReplaceInPlace(&s.c.Owed, key, s.largeBody(), xt)
	case message.EqualFold(mode, "add"):
		err = d.Add(&s.c.Owed, key, value, xt)
	case message.EqualFold(mode, "replace"):
		err = d.Replace(&s.c.Owed, key, value, xt)
	case len(value) >= largeValue:
		err = d.SetInPlace(&s.c.Owed, key, s.largeBody(), xt)
	default:
		err = d.Set(&s.c.Owed, key, value, xt)
	}
	s.count(tallySet, err)
	if err != nil {
		return s.replyError(err)
	}
	s.appendHead(statusCreated, s.req.KeepAlive, 0)
	s.appendLocation()
	s.endHead()
	return statusCreated
}

// largeValue is the size from which on a value is stored from where it is.
const largeValue = 1 << 20

// largeBody returns the body with db.Headroom bytes in front of it, which are the end of the header: nobody looks at them any more but for
// credentials, which count again when the rules change. The buffer of a large body is not used again, and no more is read into it before
// the log has been waited for.
func (s *Session) largeBody() []byte { return s.req.BodyWithRoom(db.Headroom) }

func (s *Session) restDelete(d *db.DB, key []byte) int {
	err := d.Remove(&s.c.Owed, key)
	s.count(tallyRemove, err)
	if err != nil {
		return s.replyError(err)
	}
	return s.replyEmpty(statusNoContent)
}

// restXT returns the expiration argument of the header X-Kt-Xt, which is always absolute.
func (s *Session) restXT() db.XT {
	if at := date.Parse(s.req.Expiry()); at > 0 && at < db.MaxXT {
		return db.XT(-at)
	}
	return db.Never
}

func (s *Session) replyEmpty(status int) int {
	s.appendHead(status, s.req.KeepAlive, 0)
	s.endHead()
	return status
}

func (s *Session) replyNoDatabase() int {
	text := errNoDatabase.Error() + "\n"
	length := len(text)
	if s.req.Method == message.HEAD {
		text, length = "", noLength
	}
	s.appendHead(statusBadRequest, s.req.KeepAlive, length)
	s.endHead()
	s.c.Out = append(s.c.Out, text...)
	return statusBadRequest
}

func (s *Session) replyError(err error) int {
	if s.denied != nil { // since the request was let in
		return s.replyDenied()
	}
	if noMemory(err) {
		return s.refuseMemory(err)
	}
	status := restStatus(s.req.Method, err)
	s.logFailure(status, err)
	text := s.errorText(err)
	var body []byte
	if status == statusNoSpace { // the original does not know it: whoever reads the reply is a person, or a log
		body = append(append(body, text...), '\n')
	}
	s.appendHead(status, s.req.KeepAlive, len(body))
	s.c.Out = append(s.c.Out, "X-Kt-Error: "...)
	s.c.Out = appendBlankless(s.c.Out, text)
	s.c.Out = append(s.c.Out, crlf...)
	if len(body) > 0 {
		s.appendHeader("Content-Type: ", "text/plain")
	}
	s.endHead()
	s.c.Out = append(s.c.Out, body...)
	return status
}

func (s *Session) appendXT(xt int64) {
	if xt < db.MaxXT {
		s.c.Out = appendHTTPDate(append(s.c.Out, "X-Kt-Xt: "...), xt)
		s.c.Out = append(s.c.Out, crlf...)
	}
}

// appendLocation appends the URL of the record as the original gives it: this host, whatever it is called, and the
// target as it came.
func (s *Session) appendLocation() {
	out := append(s.c.Out, "Location: http://localhost"...)
	if s.h.opts.Port != 80 {
		out = strconv.AppendInt(append(out, ':'), int64(s.h.opts.Port), 10)
	}
	out = appendBlankless(out, s.req.Target())
	s.c.Out = append(out, crlf...)
}

// appendBlankless appends a header value with its runs of blanks and control bytes turned into single spaces.
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
