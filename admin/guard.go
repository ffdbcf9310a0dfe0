package admin

import (
	"errors"
	"net/http"

	"gotycoon/internal/browser"
	"gotycoon/internal/rescue"
)

// guard serves a path only to clients that have this access.
func (s *Server) guard(access Access, h http.Handler) http.Handler {
	h = s.rescued(h)
	if access == Open {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.opts.Authorize(r, access == Admin); err != nil {
			refuse(w, err)
			return
		}
		if err := s.wantedByUser(r); err != nil {
			refuse(w, err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// wantedByUser returns an error if a web page makes a browser send the request without its user's
// intent.
func (s *Server) wantedByUser(r *http.Request) error {
	if s.opts.Pages == nil {
		return nil
	}
	return s.opts.Pages.Check(browser.HeadersOf(r), browser.About{
		Changes: r.Method != http.MethodGet && r.Method != http.MethodHead,
		Proven:  r.TLS != nil || s.opts.Proves && r.Header.Get("Authorization") != "",
	})
}

// rescued answers a request that panics with status 500. net/http itself would close the connection
// without an answer or a log line, and a page of the console would wait for ever.
func (s *Server) rescued(h http.Handler) http.Handler {
	return http.HandlerFunc(func(reply http.ResponseWriter, r *http.Request) {
		w := newPaced(reply)
		if err := rescue.Do(s.opts.Logger, r.Method+" "+r.URL.Path, func() { h.ServeHTTP(w, r) }); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

// challenge asks a client for a user and password.
const challenge = `Basic realm="gotycoon", charset="UTF-8"`

// refuse answers a refused request with the reason.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusForbidden
	if e, ok := errors.AsType[interface {
		error
		Status() int
	}](err); ok {
		status = e.Status()
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	http.Error(w, err.Error(), status)
}
