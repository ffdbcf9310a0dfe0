package admin

import (
	"errors"
	"net/http"
)

// guard serves those who have the access that a path needs.
func (s *Server) guard(access Access, h http.Handler) http.Handler {
	if access == Open {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.opts.Authorize(r, access == Admin); err != nil {
			refuse(w, err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// refuse tells a client that it may not, and how it could.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusForbidden
	if errors.Is(err, ErrUnauthenticated) {
		w.Header().Set("WWW-Authenticate", `Basic realm="gotycoon", charset="UTF-8"`)
		status = http.StatusUnauthorized
	}
	http.Error(w, err.Error(), status)
}
