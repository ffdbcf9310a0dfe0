// Package browser recognises what a web page makes a user's browser send to a server behind the user's back.
//
// A server that serves its own machine, or a private network, is in reach of every page that somebody opens there. A page can
//
//   - send requests to it by its address, without seeing the replies (cross-site requests): one is enough to clear a database,
//   - have its own name resolved to the server's address once it is loaded (DNS rebinding). For the browser its requests then go to the
//     page's own site, and it reads the replies as well.
//
// Browsers tell on themselves by headers that no page can change or leave out. Requests without them are none of a browser and pass: the
// clients of databases send none, and may use any name for the server. The rules for the others are in Policy.Check:
//
//   - A page of another site is refused. Sec-Fetch-Site says so, which browsers send to addresses that they trust (HTTPS, this machine), else
//     Origin (with every request but simple GETs), else Referer.
//   - Where a browser tells none of them (a GET over plain HTTP, whose page wants no Referer) nothing may be changed.
//   - The host that the browser believes to talk to must be an address, localhost, the machine's own name, or one of the configured names.
//     A rebound name is none of them. Over TLS the certificate proves the name, and credentials prove that the user means this server: a
//     browser sends them to no other name.
//
// The Host of requests without a browser's marks is not looked at, although a stricter rule would be simpler: clients that reach the server
// by a name in a DNS or in /etc/hosts would be refused after an update.
package browser

import "bytes"

// Field is a header that tells something of a browser.
type Field int

// The fields. Fields is how many there are.
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

// Headers are the values of the fields of one request; nil: there is no such header.
type Headers [Fields][]byte

// Marked reports whether a browser has sent the request.
//
// User-Agent and Accept-Language can be set by pages of the server's own name, so by rebound ones, but not left out. JavaScript outside of
// browsers (Node.js) sends Accept-Language too, together with Sec-Fetch-Mode and without Sec-Fetch-Site: browsers send both or none.
// PowerShell calls itself Mozilla and has no other mark; a page that calls itself PowerShell still has its browser's Accept-Language.
func (h *Headers) Marked() bool {
	return h[Origin] != nil || h[Referer] != nil || h[FetchSite] != nil ||
		h[AcceptLanguage] != nil && h[FetchMode] == nil || isBrowser(h[UserAgent])
}

func isBrowser(agent []byte) bool {
	return bytes.HasPrefix(agent, []byte("Mozilla/")) && !bytes.Contains(agent, []byte("PowerShell/"))
}

// Tells reports whether a field with a value can be a mark by itself, so that Marked is worth asking.
func (f Field) Tells(value []byte) bool {
	switch f {
	case Host, FetchMode:
		return false
	case UserAgent:
		return isBrowser(value)
	}
	return true
}

// IsRequestLine reports whether a line is what a browser begins with. Ports with a protocol of lines end a connection that sends one: what
// follows could be lines that they obey. Over HTTP that is the body of a page's request, and over TLS a name or a ticket in the first message
// of a handshake, which a page's site has chosen.
func IsRequestLine(line []byte) bool {
	line = bytes.TrimSuffix(line, []byte("\r"))
	_, rest, _ := bytes.Cut(line, []byte(" "))
	return isHandshake(line) ||
		IsRequestStart(line) && (bytes.HasSuffix(rest, []byte(" HTTP/1.1")) || bytes.HasSuffix(rest, []byte(" HTTP/1.0")))
}

// IsRequestStart is IsRequestLine for the beginning of a line that is too long to be read as a whole: a page may ask for a path of any length.
func IsRequestStart(line []byte) bool {
	method, _, found := bytes.Cut(line, []byte(" "))
	switch string(method) {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH":
		return found
	}
	return isHandshake(line)
}

// isHandshake reports whether bytes begin a handshake of TLS.
func isHandshake(p []byte) bool { return bytes.HasPrefix(p, []byte{0x16, 0x03}) }
