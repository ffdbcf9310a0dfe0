// Package webport is what sequences and quotas have in common: a port that speaks the small part of
// HTTP that coconut speaks, and things with names.
//
// The message reader of package httpapi cannot serve this port. That reader accepts whatever Kyoto
// Tycoon accepts; here everything that coconut or a proxy might understand differently ends the
// connection, so the replies would change. request.go has the differences one by one.
package webport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/internal/browser"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/internal/portserver"
	"gotycoon/services"
)

// keepBody is how many bytes a connection keeps for bodies.
const keepBody = 4 << 10

// Status is the status of a reply, as its first line has it.
type Status string

// The statuses of replies to calls that are not refused.
const (
	OK         Status = "200 OK"
	badRequest Status = "400 Bad Request"
	notFound   Status = "404 Not Found"
	failed     Status = "500 Internal Server Error"
	standby    Status = "503 Service Unavailable"
)

// Route answers a call: it appends the body of the reply to dst. target is the path and the query
// as they were sent. The reply leaves when the updates that Route has added to owed are safe.
type Route func(dst, target []byte, owed *db.Pending) (body []byte, status Status)

// Port serves calls over HTTP. Replies leave when the updates that they acknowledge are safe.
type Port struct {
	*services.Port
	kind   frame.MemberKind
	route  Route
	places map[string]int // index of the counter of each path
	errors reporter
}

// unknown counts the requests for all other paths.
const unknown = "unknown"

// New returns a port. paths are the paths of the calls, without the slash, in the order in which
// requests are counted.
func New(name string, kind frame.MemberKind, o services.Options, route Route, paths ...string) *Port {
	p := &Port{kind: kind, Port: services.NewPort(name, o, append(paths, unknown)...), route: route, places: map[string]int{}}
	for i, path := range paths {
		p.places["/"+path] = i
	}
	p.errors.logger = p.Logger
	return p
}

// Start implements services.Service.
func (p *Port) Start(l net.Listener) { p.Serve(l, p.begin) }

// session answers the requests of one connection. Replies to pipelined requests share one wait for
// the log.
type session struct {
	*netio.Conn
	port   *Port
	socket net.Conn
	body   []byte
	unstop func() bool
}

func (p *Port) begin(ctx context.Context, socket net.Conn, resume func()) portserver.Service {
	s := &session{port: p, socket: socket, body: make([]byte, 0, 64)}
	s.Conn, s.unstop = p.Open(ctx, socket, resume, netio.Options{MaxRequest: maxHead + maxBody})
	return s
}

// Run implements portserver.Service.
func (s *session) Run() (rests bool) {
	for s.Ending.Err() == nil {
		if err := s.WaitByte(); err != nil {
			if errors.Is(err, netio.ErrRests) {
				return true
			}
			break
		}
		if !s.one() {
			break
		}
	}
	if err := s.Flush(); err != nil && !errors.Is(err, net.ErrClosed) {
		s.port.Logger.Debug("sending replies: "+err.Error(), slog.String("peer", s.socket.RemoteAddr().String()))
	}
	return false
}

// End implements portserver.Service.
func (s *session) End() {
	s.unstop()
	s.Close()
}

// one answers a request, and reports whether the connection stays.
func (s *session) one() (keep bool) {
	p, c := s.port, s.Conn
	if head := c.Buffered(); browser.IsHello(head) {
		_, line := browser.Misled(head, "HTTP")
		p.Logger.Info("(" + s.socket.RemoteAddr().String() + "): " + line)
		return false
	}
	over, unmoved := p.Move(c, p.kind, false)
	if over && unmoved == nil {
		return false
	}
	r, err := readRequest(c)
	if err != nil {
		p.say(err, s.socket)
		return false
	}
	if c.Visitor != nil {
		if denied := p.permit(c, &r); denied != nil {
			r.keep = r.keep && !denied.Remote
			c.Out = appendRefusal(c.Out, &r, denied)
			return !denied.Remote && skipBody(c, r.body) == nil && r.keep
		}
	}
	if denied := p.wantedByUser(c, &r); denied != nil {
		// The body comes from a web page: it must not be read as the next request.
		r.keep = false
		c.Out = appendRefusal(c.Out, &r, denied)
		return false
	}
	if over {
		r.keep = false
		c.Out = appendReply(c.Out, &r, standby, fmt.Appendf(nil, "%v\n", unmoved))
		return false
	}
	var status Status
	s.body, status = p.route(s.body[:0], r.target, &c.Owed)
	c.Out = appendReply(c.Out, &r, status, s.body)
	if cap(s.body) > keepBody {
		s.body = nil // it was a block of numbers; an idle connection does not keep room for it
	}
	p.measure(c, &r, status)
	if c.Owes() {
		c.Answered(unconfirmed(&r))
	}
	return skipBody(c, r.body) == nil && r.keep
}

func (p *Port) say(err error, socket net.Conn) {
	if errors.Is(err, errRequest) {
		p.Logger.Info("malformed request, closing: " + socket.RemoteAddr().String())
	} else if !errors.Is(err, io.EOF) {
		p.Logger.Debug("reading a request: "+err.Error(), slog.String("peer", socket.RemoteAddr().String()))
	}
}

// unconfirmed returns what is sent instead of the reply to a request when other servers do not
// confirm what the reply tells.
func unconfirmed(r *request) netio.Instead {
	request := *r
	return func(dst []byte, err error) []byte {
		return appendReply(dst, &request, standby, fmt.Appendf(nil, "%v\n", err))
	}
}

func appendReply(dst []byte, r *request, status Status, body []byte) []byte {
	dst = append(append(append(dst, r.version...), ' '), status...)
	if r.keep {
		dst = append(dst, "\r\nConnection: keep-alive"...)
	}
	dst = strconv.AppendInt(append(dst, "\r\nContent-length: "...), int64(len(body)), 10)
	return append(append(dst, "\r\n\r\n"...), body...)
}

// NotFound is the reply to a call that does not exist, with the original's body.
func NotFound(dst []byte) ([]byte, Status) { return append(dst, "Not Found"...), notFound }

// BadRequest is the reply to a call with wrong parameters, with the original's body.
func BadRequest(dst []byte) ([]byte, Status) { return append(dst, "Bad Request"...), badRequest }

// Failed is the reply to a call that could not be carried out. An error that is a services.Standby
// sends the client to another server, and one that may pass asks it to try again; all other errors
// are logged.
func (p *Port) Failed(dst []byte, err error) ([]byte, Status) {
	if _, ok := errors.AsType[*services.Standby](err); ok || dberr.Unavailable(err) {
		return fmt.Appendf(dst, "%v\n", err), standby
	}
	p.Report(err)
	return fmt.Appendf(dst, "%v\n", err), failed
}

// Report logs why calls could not be carried out. Of many errors it logs one a second.
func (p *Port) Report(err error) { p.errors.report(err) }

// measure counts a request that has been answered.
func (p *Port) measure(c *netio.Conn, r *request, status Status) {
	if !c.Meter.Wanted() {
		return
	}
	path, query := r.call()
	place, known := p.places[string(path)]
	if !known {
		place = len(p.places)
	}
	c.Meter.Note(p.Requests(), place, status != OK)
	if c.Meter.Detailed() {
		c.Meter.Describe(metrics.Detail{Protocol: p.Requests(), Command: place, Key: query, In: len(r.target), Out: len(c.Out), Failed: status != OK})
	}
}

// reporter limits the log lines of errors that every call can meet, as on a full disk: it writes
// one line a second.
type reporter struct {
	logger *slog.Logger

	mu     sync.Mutex // protects the fields below
	last   time.Time
	passed int // errors since the last line
}

func (r *reporter) report(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passed++
	if now := time.Now(); now.Sub(r.last) >= time.Second {
		r.logger.Error("coconut: "+err.Error(), "calls", r.passed)
		r.last, r.passed = now, 0
	}
}
