package api

import (
	"net/http"
	"net/netip"

	"gotycoon/internal/browser"
)

// Header is the name of a header that a page of another site cannot send. Its value has no meaning.
const Header = "X-Gotycoon-Console"

// change allows requests that may change something, and calls h for them.
func (a *API) change(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
		if r.Header.Get(Header) == "" {
			return nil, refused(http.StatusForbidden, "a change needs the header %s", Header)
		}
		if err := a.opts.Pages.Check(browser.HeadersOf(r), browser.About{Changes: true, Proven: true}); err != nil {
			return nil, refused(http.StatusForbidden, "a change cannot come from another site: %v", err)
		}
		if why := a.opts.Fixed(); why != "" {
			return nil, refused(http.StatusForbidden, "%s", why)
		}
		return h(w, r, s)
	}
}

// rebound refuses a request from this machine that names another host. A page whose name is
// resolved to our address makes its user's browser send such requests, and the browser takes them
// for requests to the page's own site. A request with right credentials passes: a browser sends
// credentials to no other name than the one they are for.
func (a *API) rebound(r *http.Request) error {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() || a.opts.Proves && r.Header.Get("Authorization") != "" || r.TLS != nil ||
		a.opts.Pages.KnowsHost(r.Host) {
		return nil
	}
	return refused(http.StatusMisdirectedRequest, "%q is not this machine: open the console by its address, or as localhost, "+
		"or start the server with -http-hosts NAME", r.Host)
}

// who names the sender of a request for the log.
func who(r *http.Request) string {
	if user, _, ok := r.BasicAuth(); ok {
		return user + "@" + r.RemoteAddr
	}
	return r.RemoteAddr
}

// note logs a change.
func (a *API) note(r *http.Request, what string) {
	a.opts.Logger.Info("console: " + what + " by " + who(r))
}
