// Package browser recognises requests that a web page makes a user's browser send without the
// user's intent.
//
// A server on its own machine, or in a private network, can be reached by every page that somebody
// opens in a browser there. A page can
//
//   - send requests to the server's address without seeing the replies (cross-site requests): one
//     request is enough to clear a database;
//   - let its own name be resolved to the server's address after it has been loaded (DNS
//     rebinding). The browser then takes the requests for requests to the page's own site, and lets
//     the page read the replies as well.
//
// Browsers mark such requests by headers that no page can change or leave out. Requests without
// these marks do not come from a browser and pass: database clients send no marks, and may use any
// name for the server. The rules for marked requests are in Policy.Check:
//
//   - A request for a page of another site is refused. Sec-Fetch-Site names the relation of the
//     sites, but browsers send it only to addresses that they trust (HTTPS, this machine).
//     Otherwise Origin names the page (missing in simple GETs), otherwise Referer.
//   - A request with none of these three (a GET over plain HTTP from a page without Referer) must
//     not change anything.
//   - The host in the request must be an address, localhost, the machine's own name, or one of the
//     configured names. A rebound name is none of these. Over TLS the certificate proves the name.
//     Right credentials prove it too: a browser sends them to no other name than the one they are
//     for.
//
// The Host of unmarked requests is not checked, although a stricter rule would be simpler: after an
// update of the server, clients would be refused that reach it by a name in a DNS or in /etc/hosts.
package browser

import "bytes"

// Field is a header that may reveal a browser.
type Field int

// The fields. Fields is their number.
const (
	Host Field = iota
	Origin
	Referer
	UserAgent
	AcceptLanguage
	FetchSite
	FetchMode
	Fields
)

// names are the names of the fields, in lower case.
var names = [Fields]string{"host", "origin", "referer", "user-agent", "accept-language", "sec-fetch-site", "sec-fetch-mode"}

// FieldNamed returns the field that a header's name stands for.
func FieldNamed(name []byte) (f Field, ok bool) {
	switch len(name) {
	case len("host"):
		f = Host
	case len("origin"):
		f = Origin
	case len("referer"):
		f = Referer
	case len("user-agent"):
		f = UserAgent
	case len("accept-language"):
		f = AcceptLanguage
	case len("sec-fetch-site"):
		if f = FetchSite; name[len("sec-fetch-")]|0x20 == 'm' {
			f = FetchMode
		}
	default:
		return 0, false
	}
	return f, bytes.EqualFold(name, []byte(names[f]))
}

// Headers are the values of the fields in one request; nil means that the request has no such
// header.
type Headers [Fields][]byte

// Marked reports whether a browser has sent the request.
//
// A page under the server's own name, so also a rebound page, can change User-Agent and
// Accept-Language, but cannot leave them out. JavaScript outside of browsers (Node.js) sends
// Accept-Language and Sec-Fetch-Mode without Sec-Fetch-Site; browsers send both of the latter or
// none. PowerShell's User-Agent begins with Mozilla, but it has no other mark; a page that calls
// itself PowerShell still has its browser's Accept-Language.
func (h *Headers) Marked() bool {
	return h[Origin] != nil || h[Referer] != nil || h[FetchSite] != nil ||
		h[AcceptLanguage] != nil && h[FetchMode] == nil || isBrowser(h[UserAgent])
}

func isBrowser(agent []byte) bool {
	return bytes.HasPrefix(agent, []byte("Mozilla/")) && !bytes.Contains(agent, []byte("PowerShell/"))
}

// Tells reports whether a field with this value can be a mark by itself, so that it is worth
// calling Marked.
func (f Field) Tells(value []byte) bool {
	switch f {
	case Host, FetchMode:
		return false
	case UserAgent:
		return isBrowser(value)
	}
	return true
}

// IsRequestLine reports whether a line may be the first line of what a browser sends: an HTTP
// request or a TLS handshake. A port with a protocol of lines ends a connection that sends such a
// line, because the following lines could be obeyed as commands: over HTTP the body of a page's
// request, over TLS a name or a ticket that the page's site has put into the first message of the
// handshake.
func IsRequestLine(line []byte) bool {
	line = bytes.TrimSuffix(line, []byte("\r"))
	_, rest, _ := bytes.Cut(line, []byte(" "))
	return IsHandshake(line) ||
		IsRequestStart(line) && (bytes.HasSuffix(rest, []byte(" HTTP/1.1")) || bytes.HasSuffix(rest, []byte(" HTTP/1.0")))
}

// IsRequestStart is IsRequestLine for the beginning of a line that is too long to be read: a page
// may request a path of any length.
func IsRequestStart(line []byte) bool {
	method, _, found := bytes.Cut(line, []byte(" "))
	switch string(method) {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH":
		return found
	}
	return IsHandshake(line)
}

// IsHandshake reports whether p begins with a TLS handshake.
func IsHandshake(p []byte) bool { return bytes.HasPrefix(p, []byte{0x16, 0x03}) }
