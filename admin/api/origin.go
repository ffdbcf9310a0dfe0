package api

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
)

// Header is what a page of another site cannot send; its value does not matter.
const Header = "X-Gotycoon-Console"

// change calls h for requests that may change something.
func (a *API) change(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
		if r.Header.Get(Header) == "" {
			return nil, refused(http.StatusForbidden, "a change needs the header %s", Header)
		}
		if err := a.cross.Check(r); err != nil {
			return nil, refused(http.StatusForbidden, "a change cannot come from another site")
		}
		if why := a.opts.Fixed(); why != "" {
			return nil, refused(http.StatusForbidden, "%s", why)
		}
		return h(w, r, s)
	}
}

// rebound refuses a request from this machine, without credentials, for a host that is not this machine: a site whose name is turned into
// our address sends such requests through a user's browser, which takes them for its own.
func rebound(r *http.Request) error {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() || r.Header.Get("Authorization") != "" || r.TLS != nil {
		return nil
	}
	host := hostOf(r.Host)
	if _, err := netip.ParseAddr(host); err == nil || strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return nil
	}
	if name, err := os.Hostname(); err == nil && strings.EqualFold(host, name) {
		return nil
	}
	return refused(http.StatusMisdirectedRequest, "%q is not this machine: open the console by its address, or as localhost", host)
}

// hostOf returns a Host header without the port.
func hostOf(header string) string {
	host, _, err := net.SplitHostPort(header)
	if err != nil {
		host = header
	}
	return strings.Trim(host, "[]")
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
