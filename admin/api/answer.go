package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/internal/browser"
	"gotycoon/internal/rescue"
)

// handler answers a request with a value for JSON, or with nil if it has written the answer itself.
type handler func(w http.ResponseWriter, r *http.Request, s *Sources) (any, error)

// problem is an error with its HTTP status.
type problem struct {
	status int
	text   string
}

// Error says what is wrong, and what to do.
func (p *problem) Error() string { return p.text }

func refused(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

// guard serves a path with h.
func (a *API) guard(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, purse := a.withPurse(r)
		defer purse.close()
		answer, err := a.call(h, w, r)
		var text []byte
		if err == nil && answer != nil {
			text, err = encode(purse, answer)
		}
		switch {
		case err != nil:
			status, problem := explain(err)
			text, _ = json.Marshal(map[string]string{"error": problem}) // strings can be written
			write(w, status, text)
		case answer != nil:
			write(w, http.StatusOK, text)
		}
	})
}

// encode returns an answer as JSON. Its bytes, and about as many of the answer's rows, are held
// until the client has taken them.
func encode(p *purse, answer any) ([]byte, error) {
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, errors.New("the answer cannot be written as JSON")
	}
	return text, p.Hold(2 * len(text))
}

func (a *API) call(h handler, w http.ResponseWriter, r *http.Request) (any, error) {
	if err := a.rebound(r); err != nil {
		return nil, err
	}
	if err := a.opts.Allow(r); err != nil {
		return nil, refused(http.StatusForbidden, "%v", err)
	}
	s := a.enter()
	if s == nil {
		return nil, refused(http.StatusServiceUnavailable, "%s", a.phase())
	}
	defer a.leave()
	var answer any
	var err error
	work := func() { answer, err = h(w, r, s) }
	if fault := rescue.Do(a.opts.Logger, r.Method+" "+r.URL.Path, work, http.ErrAbortHandler); fault != nil {
		return nil, fault
	}
	return answer, err
}

// phase returns the reason why there are no sources.
func (a *API) phase() string {
	if reasons := a.opts.Ready(); len(reasons) > 0 {
		return strings.Join(reasons, "; ")
	}
	return "the server is starting or stopping"
}

func write(w http.ResponseWriter, status int, text []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(text) // if the client has gone, nobody misses the answer
}

// explain returns the HTTP status and the text for an error.
func explain(err error) (status int, text string) {
	if p, ok := errors.AsType[*problem](err); ok {
		return p.status, p.text
	}
	e, ok := errors.AsType[*dberr.Error](err)
	if !ok {
		return http.StatusInternalServerError, err.Error()
	}
	text = e.Message
	switch {
	case errors.Is(err, dberr.ErrNoRecord):
		return http.StatusNotFound, "there is no such record, or it has expired"
	case errors.Is(err, dberr.ErrDuplicate):
		return http.StatusConflict, "there is a record with this key already"
	case errors.Is(err, dberr.ErrConflict):
		return http.StatusConflict, "the record has changed meanwhile: nothing was done"
	case errors.Is(err, dberr.ErrElsewhere):
		return http.StatusForbidden, text
	case errors.Is(err, dberr.ErrReadOnly):
		return http.StatusForbidden, "the database is read-only"
	case dberr.Unavailable(err):
		return http.StatusServiceUnavailable, text
	case dberr.Refused(err):
		return http.StatusInsufficientStorage, text
	case e.Code == dberr.NotImplemented:
		return http.StatusNotImplemented, "this kind of database cannot do that"
	case e.Code == dberr.InvalidOperation:
		return http.StatusBadRequest, text
	}
	return http.StatusInternalServerError, text
}

// database returns the database that the path names by its number.
func database(r *http.Request, s *Sources) (*db.DB, error) {
	for _, d := range s.Catalog.All() {
		if fmt.Sprint(d.Index()) == r.PathValue("db") {
			return d, nil
		}
	}
	return nil, refused(http.StatusNotFound, "there is no database %q", r.PathValue("db"))
}

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
