package admin

import "net/http"

// May returns nil if the sender of a request has the access, else the reason. Handlers call it for
// parts of an answer that not all may see.
func (s *Server) May(r *http.Request, access Access) error {
	if access == Open {
		return nil
	}
	return s.opts.Authorize(r, access == Admin)
}
