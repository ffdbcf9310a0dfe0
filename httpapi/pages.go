package httpapi

import (
	"bytes"

	"gotycoon/access"
	"gotycoon/httpapi/tsv"
	"gotycoon/internal/browser"
)

// mark notes a header that tells something of a browser.
func (r *request) mark(buf, name []byte, value span) {
	if f, ok := browser.FieldNamed(name); ok {
		r.marks[f], r.marked[f] = value, true
		r.tells = r.tells || f.Tells(buf[value.from:value.to])
	}
}

// wantedByUser reports whether the request may be served as far as browsers are concerned: one that a page makes behind its user's back may
// not. A refused one ends the connection, since what a page has put into the body must never be taken for the next request.
func (s *Session) wantedByUser() bool {
	if !s.req.tells || s.h.opts.Pages == nil { // the usual case
		return true
	}
	var h browser.Headers
	for f, there := range s.req.marked {
		if there {
			h[f] = s.req.text(s.req.marks[f])
		}
	}
	err := s.h.opts.Pages.Check(&h, browser.About{Changes: s.changes(), Proven: s.c.Secure() || s.c.Visitor.Known()})
	if err != nil {
		s.denied = &access.Denied{Reason: err.Error()}
	}
	return err == nil
}

// changes reports whether the request may change something, as far as its head tells.
func (s *Session) changes() bool {
	r := &s.req
	if !r.isRPC() {
		return r.method != methodGET && r.method != methodHEAD
	}
	var in tsv.Rows
	name := tsv.DecodeURL(bytes.Clone(r.text(r.path)[len(rpcPrefix):]))
	tsv.DecodeForm(&in, bytes.Clone(r.text(r.query)))
	need, known := procedureRights[string(name)]
	return known && need.rights&^access.Read != 0 || in.Has("SIGNAL")
}
