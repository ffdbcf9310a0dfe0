package httpapi

import (
	"bytes"

	"gotycoon/access"
	"gotycoon/httpapi/message"
	"gotycoon/httpapi/tsv"
	"gotycoon/internal/browser"
)

// wantedByUser reports whether the request may be served as far as browsers are concerned: one that a page makes behind its user's back may
// not. A refused one ends the connection, since what a page has put into the body must never be taken for the next request.
func (s *Session) wantedByUser() bool {
	if !s.req.FromBrowser || s.h.opts.Pages == nil { // the usual case
		return true
	}
	h := s.req.Marks()
	err := s.h.opts.Pages.Check(&h, browser.About{Changes: s.changes(), Proven: s.c.Secure() || s.c.Visitor.Known()})
	if err != nil {
		s.denied = &access.Denied{Reason: err.Error()}
	}
	return err == nil
}

// changes reports whether the request may change something, as far as its head tells.
func (s *Session) changes() bool {
	r := &s.req
	if !s.rpc {
		return r.Method != message.GET && r.Method != message.HEAD
	}
	var in tsv.Rows
	name := tsv.DecodeURL(bytes.Clone(r.Path()[len(rpcPrefix):]))
	tsv.DecodeForm(&in, bytes.Clone(r.Query()))
	need, known := procedureRights[string(name)]
	return known && need.rights&^access.Read != 0 || in.Has("SIGNAL")
}
