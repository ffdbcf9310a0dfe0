package admin

import "net/http"

// May returns why who sends a request does not have the access. Handlers ask it for what they leave out for some.
func (s *Server) May(r *http.Request, access Access) error {
	if access == Open {
		return nil
	}
	return s.opts.Authorize(r, access == Admin)
}
