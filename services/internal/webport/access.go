package webport

import (
	"errors"
	"fmt"
	"net/http"

	"gotycoon/access"
	"gotycoon/internal/browser"
	"gotycoon/internal/netio"
)

// permit returns nil when the client may make a call.
func (p *Port) permit(c *netio.Conn, r *request) *access.Denied {
	err := c.Visitor.Present(r.authorization)
	if err == nil {
		err = c.Visitor.Service(r.right(), p.Name())
	}
	if err == nil {
		return nil
	}
	denied, ok := errors.AsType[*access.Denied](err)
	if !ok {
		denied = &access.Denied{Reason: err.Error()}
	}
	return denied
}

// wantedByUser returns nil if a request is to be served, and the reason if it came from a web page
// that may not send it.
func (p *Port) wantedByUser(c *netio.Conn, r *request) *access.Denied {
	if p.Pages == nil || !r.marks.Marked() {
		return nil
	}
	err := p.Pages.Check(&r.marks, browser.About{Changes: r.right() != access.Read, Proven: c.Secure() || c.Visitor.Known()})
	if err == nil {
		return nil
	}
	return &access.Denied{Reason: err.Error()}
}

// right returns the right that a call needs. /explain and /query are the only calls that only read;
// a path without a call needs the greater right.
func (r *request) right() access.Rights {
	switch path, _ := r.call(); string(path) {
	case "/explain", "/query":
		return access.Read
	}
	return access.Write
}

// appendRefusal appends the reply to a call that is refused.
func appendRefusal(dst []byte, r *request, denied *access.Denied) []byte {
	text := denied.Error() + "\n"
	dst = fmt.Appendf(dst, "%s %d %s\r\n", r.version, denied.Status(), http.StatusText(denied.Status()))
	if denied.Unknown {
		dst = append(dst, "WWW-Authenticate: "+access.Challenge+"\r\n"...)
	}
	connection := "close"
	if r.keep {
		connection = "keep-alive"
	}
	dst = fmt.Appendf(dst, "Connection: %s\r\n", connection)
	return fmt.Appendf(dst, "Content-Type: text/plain\r\nContent-length: %d\r\n\r\n%s", len(text), text)
}
