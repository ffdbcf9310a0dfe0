package browser

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
)

// AnyHost is the name that lets all requests of browsers pass.
const AnyHost = "*"

// Policy decides which requests of browsers are served. It may be used by many goroutines.
type Policy struct {
	own   string   // name of the machine, in lower case
	hosts []string // configured names, in lower case
	any   bool
}

// New makes a policy. hosts are further names of the server, and names of sites whose pages may
// send requests.
func New(hosts []string) (*Policy, error) {
	p := &Policy{}
	if name, err := os.Hostname(); err == nil {
		p.own = canonical(name)
	}
	for _, name := range hosts {
		switch {
		case name == AnyHost:
			p.any = true
		case name == "" || strings.ContainsAny(name, "/ *@") || strings.Contains(name, ":") && net.ParseIP(name) == nil:
			return nil, fmt.Errorf("%q is no host name: write names without http:// and without a port, or %s for all", name, AnyHost)
		default:
			p.hosts = append(p.hosts, canonical(name))
		}
	}
	return p, nil
}

// About is what a policy has to know of a request beside its headers.
type About struct {
	Changes bool // the request may change something
	Proven  bool // the request came over TLS, or with credentials that were found right
}

// Refused says why a request of a browser is not served, and what the user can do.
type Refused struct{ reason string }

// Error returns the reason.
func (e *Refused) Error() string { return e.reason }

// Status is the HTTP status.
func (e *Refused) Status() int { return http.StatusForbidden }

// Check returns nil if the request is to be served, else a *Refused.
func (p *Policy) Check(h *Headers, r About) error {
	if !h.Marked() || p.any {
		return nil
	}
	page, told := h.page()
	switch {
	case told && page != "" && !p.named(page):
		return &Refused{fmt.Sprintf("a browser sends this for a page of %q, which is not this server: use a client, "+
			"or start the server with -http-hosts %s if pages of that host may", page, page)}
	case !r.Proven && h[Host] != nil && !p.KnowsHost(string(h[Host])):
		return &Refused{fmt.Sprintf("a browser asks for the host %q, which this server does not know as a name of its own: use its address, or localhost, "+
			"or start the server with -http-hosts NAME if it is one", hostOf(string(h[Host])))}
	case !told && r.Changes:
		return &Refused{"a browser does not say which page wants this change: use a client, for example curl, " +
			"or start the server with -http-hosts '*' to let browsers do everything"}
	}
	return nil
}

// page returns the host of the page that makes the browser send the request, "" if that is a page
// of this server or the user has typed the address. told is false if the request does not say.
func (h *Headers) page() (host string, told bool) {
	site := strings.ToLower(string(h[FetchSite]))
	if site == "same-origin" || site == "none" {
		return "", true
	}
	from := h[Origin]
	if from == nil {
		from = h[Referer]
	}
	if from == nil && h[FetchSite] == nil {
		return "", false
	}
	u, err := url.Parse(string(from))
	if err != nil || u.Host == "" { // "null", or a page without a name
		return "another site", true
	}
	if h[FetchSite] == nil && h[Host] != nil && strings.EqualFold(u.Host, string(h[Host])) {
		return "", true
	}
	return u.Hostname(), true
}

// KnowsHost reports whether a Host header names this server, as far as the name can tell.
func (p *Policy) KnowsHost(header string) bool {
	host := canonical(hostOf(header))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return p.any || host == "localhost" || strings.HasSuffix(host, ".localhost") || p.own != "" && host == p.own || p.named(host)
}

// All reports whether everything is served that a browser sends, as with the original.
func (p *Policy) All() bool { return p.any }

// named reports whether a host is one of the configured names.
func (p *Policy) named(host string) bool { return slices.Contains(p.hosts, canonical(host)) }

// canonical returns a name in the form in which names are compared.
func canonical(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// hostOf returns a Host header without the port.
func hostOf(header string) string {
	host, _, err := net.SplitHostPort(header)
	if err != nil {
		host = header
	}
	return strings.Trim(host, "[]")
}

// HeadersOf returns the fields of a request of net/http.
func HeadersOf(r *http.Request) *Headers {
	h := &Headers{Host: []byte(r.Host)}
	for f, name := range names {
		if values := r.Header.Values(name); len(values) > 0 {
			h[f] = []byte(values[len(values)-1])
		}
	}
	return h
}
