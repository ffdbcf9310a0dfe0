package api

import (
	"net/http"
	"net/netip"

	"gotycoon/internal/browser"
)

// Header is what a page of another site cannot send; its value does not matter.
const Header = "X-Gotycoon-Console"

// change calls h for requests that may change something.
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

// rebound refuses a request from this machine for a host that is not this machine, whoever sends it: the console is for browsers. A page
// whose name is turned into our address sends such requests through a user's browser, which takes them for the page's own. Credentials
// that the listener has found right show that it is not so: a browser sends them to no other name.
func (a *API) rebound(r *http.Request) error {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() || a.opts.Proves && r.Header.Get("Authorization") != "" || r.TLS != nil ||
		a.opts.Pages.KnowsHost(r.Host) {
		return nil
	}
	return refused(http.StatusMisdirectedRequest, "%q is not this machine: open the console by its address, or as localhost, "+
		"or start the server with -http-hosts NAME", r.Host)
}

// who describes the sender of a request for the log.
func who(r *http.Request) string {
	if user, _, ok := r.BasicAuth(); ok {
		return user + "@" + r.RemoteAddr
	}
	return r.RemoteAddr
}

// note writes a change into the log.
func (a *API) note(r *http.Request, what string) {
	a.opts.Logger.Info("console: " + what + " by " + who(r))
}
