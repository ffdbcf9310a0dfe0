package sequence

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

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/internal/browser"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/internal/portserver"
	"gotycoon/services/leader"
)

const (
	defaultTimeout = 30 * time.Second
	keepBody       = 4 << 10 // bytes that a connection keeps for bodies

	statusOK         = "200 OK"
	statusBadRequest = "400 Bad Request"
	statusNotFound   = "404 Not Found"
	statusError      = "500 Internal Server Error"
	statusStandby    = "503 Service Unavailable"
)

// port is the common part of the sequence server and the quota server: one port, whose replies
// leave when the updates that they acknowledge are safe.
type port struct {
	route   func(dst, target []byte, owed *db.Pending) (body []byte, status string)
	timeout time.Duration
	meter   *metrics.Meter
	counted *requests // nil: requests are not counted
	limits  *netio.Limits
	logger  *slog.Logger
	errors  *reporter
	access  *access.Guard
	pages   *browser.Policy // which requests of browsers are served; nil: all
	name    string          // of the service, as access rules name it
	pool    *sync.Pool
	server  *portserver.Server

	maxConns int
}

// Limits of a server. The zero value has none.
type Limits struct {
	MaxConns int             // open connections; more are closed at once. 0 means no limit
	Conns    *netio.Limits   // of all connections of the process; nil means none
	Pages    *browser.Policy // which requests of browsers are served; nil means all
}

func newPort(timeout time.Duration, o Limits, logger *slog.Logger, meter *metrics.Meter, counted *metrics.Protocol) port {
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return port{timeout: timeout, meter: meter, counted: newRequests(counted), logger: logger, errors: &reporter{logger: logger}, pool: netio.NewPool(), limits: o.Conns, pages: o.Pages, maxConns: o.MaxConns}
}

// start begins to serve. It is called once.
func (p *port) start(l net.Listener) {
	p.server = portserver.Start(l, portserver.Options{Serve: p.serve, MaxConns: p.maxConns, Logger: p.logger})
}

// close ends the connections.
func (p *port) close() error {
	if p.server == nil {
		return nil
	}
	if err := p.server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// serve answers the requests of one connection. Replies to pipelined requests share one wait for
// the log.
func (p *port) serve(ctx context.Context, socket net.Conn) {
	c := netio.New(socket, p.pool, netio.Options{Timeout: p.timeout, MaxRequest: maxHead + maxBody, Limits: p.limits, Access: p.access})
	c.Meter = p.meter.NewRecorder(socket.RemoteAddr().String())
	defer c.Close()
	body := make([]byte, 0, 64)
	for ctx.Err() == nil && c.WaitByte() == nil {
		r, err := readRequest(c)
		if err != nil {
			p.say(err, socket)
			break
		}
		if c.Visitor != nil {
			if denied := p.permit(c, &r); denied != nil {
				r.keep = r.keep && !denied.Remote
				c.Out = appendRefusal(c.Out, &r, denied)
				if denied.Remote || skipBody(c, r.body) != nil || !r.keep {
					break
				}
				continue
			}
		}
		if denied := p.wantedByUser(c, &r); denied != nil {
			// The body comes from a web page: it must not be read as the next request.
			r.keep = false
			c.Out = appendRefusal(c.Out, &r, denied)
			break
		}
		var status string
		body, status = p.route(body[:0], r.target, &c.Owed)
		c.Out = appendReply(c.Out, &r, status, body)
		if cap(body) > keepBody {
			body = nil // body was a block of numbers; an idle connection does not keep room for it
		}
		p.measure(c, &r, status)
		if skipBody(c, r.body) != nil || !r.keep {
			break
		}
	}
	if err := c.Flush(); err != nil && !errors.Is(err, net.ErrClosed) {
		p.logger.Debug("sending replies: "+err.Error(), slog.String("peer", socket.RemoteAddr().String()))
	}
}

func (p *port) say(err error, socket net.Conn) {
	if errors.Is(err, errRequest) {
		p.logger.Info("malformed request, closing: " + socket.RemoteAddr().String())
	} else if !errors.Is(err, io.EOF) {
		p.logger.Debug("reading a request: "+err.Error(), slog.String("peer", socket.RemoteAddr().String()))
	}
}

func appendReply(dst []byte, r *request, status string, body []byte) []byte {
	dst = append(append(append(dst, r.version...), ' '), status...)
	if r.keep {
		dst = append(dst, "\r\nConnection: keep-alive"...)
	}
	dst = strconv.AppendInt(append(dst, "\r\nContent-length: "...), int64(len(body)), 10)
	return append(append(dst, "\r\n\r\n"...), body...)
}

// notFound and badRequest are replies with the original's bodies.
func notFound(dst []byte) ([]byte, string)   { return append(dst, "Not Found"...), statusNotFound }
func badRequest(dst []byte) ([]byte, string) { return append(dst, "Bad Request"...), statusBadRequest }

// failed is the reply to a call that could not be carried out.
func (p *port) failed(dst []byte, err error) ([]byte, string) {
	if errors.Is(err, errUnknown) {
		return notFound(dst)
	}
	if _, ok := errors.AsType[*leader.Standby](err); ok {
		return fmt.Appendf(dst, "%v\n", err), statusStandby
	}
	p.errors.report(err)
	return fmt.Appendf(dst, "%v\n", err), statusError
}

// durable refuses a database that does not survive the process.
func durable(d *db.DB) error {
	if d == nil || !d.OnDisk() {
		return errors.New("sequences and quotas need a database file to keep their records in")
	}
	return nil
}
