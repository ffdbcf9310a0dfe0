// Package services has what all services have in common. A service is a protocol on a port of its
// own, beside the data port:
//
//	services/counter     counters of resources, as yrmcds has them
//	services/lock        named locks, as JESync has them
//	services/sequence    sequence numbers, as coconut gives them out
//	services/quota       quotas, as coconut manages them
//
// Package services/leader is no service. It decides which of several servers changes quotas and
// gives out fencing tokens.
//
// The options of every service embed Options, and its server embeds a Port and implements Service.
// The process knows a service only by this interface and by a row in its table of services
// (server/services.go). So a further service is a package here and a row there.
//
// Counters and locks are in memory only: a restart begins without them, because it has ended the
// connections that held them. Sequences, quotas, the bounds of fencing tokens and the claims to be
// the primary are records of one database file, the services' database. It is replicated to servers
// of our kind, and no protocol of clients reads or writes its records.
//
// # Rules
//
//   - A number of a sequence is given out only after a bound above it is durable.
//   - No server lowers the bound of another server: each bound has the ID of its server in its key.
//   - Only the primary changes quotas and gives out fencing tokens. Before a former primary stores
//     the first update of the new one, it has ended its own calls: leader.Role.Prepare calls Yield,
//     and Replicate comes afterwards.
//   - Calls of a former primary that the new primary has never received are undone on all servers.
//   - A call of a quota is whole on a server that takes over, even if only some of its records have
//     arrived: the record of the state comes first and says what the other records are. Of applies
//     that share a commit the state comes last, and without it none of them counts.
//   - A server that has lost records that it wrote as the primary is not the primary by that claim.
//   - No client reaches the records of the services by any protocol for records.
package services

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"gotycoon/access"
	"gotycoon/client/wire/frame"
	"gotycoon/internal/browser"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/internal/portserver"
)

// Service is a protocol on a port of its own.
type Service interface {
	// Start begins to serve the connections of l, which now belongs to the service. It is called
	// once.
	Start(l net.Listener)
	// Adopt serves a connection that has come in by another port, and reports whether it could.
	Adopt(c net.Conn) bool
	// Cut closes all connections. Others may come.
	Cut()
	// Close ends the connections and all goroutines, and waits for them. It is called once, also
	// without Start.
	Close() error

	// Name is the name of the service in access rules, metrics and messages.
	Name() string
	// Connections returns how many connections are open, and how many there have been.
	Connections() (open int, total uint64)
	// Requests returns where requests are counted; nil without Options.Meter.
	Requests() *metrics.Protocol
	// Figures returns the metrics of the service beyond connections and requests.
	Figures() metrics.Source
	// Show returns what the console shows of the service, to be written as JSON: at most limit
	// names that begin with prefix, where the service can choose by prefix.
	Show(prefix string, limit int) (any, error)
}

// Options are what every service is given. The zero value is usable.
type Options struct {
	MaxConns int           // open connections; more are closed at once. 0 means no limit
	Limits   *netio.Limits // of all connections of the process; nil means none
	Loops    *netio.Loops  // where connections rest; nil: each has a goroutine

	// Timeout: a client that takes no byte of its replies for this long is disconnected. 0 means 30
	// seconds.
	Timeout time.Duration

	Forward *netio.Forward // moves connections to the primary; nil: this server is

	Access *access.Guard   // rights of clients; nil: all of them for everybody
	Pages  *browser.Policy // which requests of browsers HTTP ports serve; nil: all
	Meter  *metrics.Meter  // measures requests; nil: nobody does
	Logger *slog.Logger    // nil means silent
}

const defaultTimeout = 30 * time.Second

// Port is the part that services share: the listener, the connections and the counters of the
// requests.
type Port struct {
	Options

	name     string
	requests *metrics.Protocol
	buffers  *sync.Pool
	server   *portserver.Server // nil before Serve
}

// NewPort returns a port with the name of its service. commands are the names under which requests
// are counted.
func NewPort(name string, o Options, commands ...string) *Port {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Port{Options: o, name: name, buffers: netio.NewPool()}
	if o.Meter != nil {
		p.requests = metrics.NewProtocol(name, commands...)
	}
	return p
}

// Serve begins to accept connections on l. begin begins the service of one of them, which may rest;
// ctx ends when the port is closed. See portserver.Service.
func (p *Port) Serve(l net.Listener, begin func(ctx context.Context, socket net.Conn, resume func()) portserver.Service) {
	if tcp, ok := l.(*net.TCPListener); ok && p.Loops != nil {
		l = netio.ListenBare(tcp)
	}
	p.server = portserver.Start(l, portserver.Options{Begin: begin, MaxConns: p.MaxConns, Logger: p.Logger})
}

// Cut implements Service.
func (p *Port) Cut() {
	if p.server != nil {
		p.server.Each(portserver.Session.Cut)
	}
}

// Adopt implements Service.
func (p *Port) Adopt(c net.Conn) bool { return p.server != nil && p.server.Adopt(c) }

// Move moves a connection to the primary if this server is not the primary: only the primary serves
// the services. It is called when the first byte of a request has come and nothing has been taken.
// over reports that the request is not to be served here. Then an error is for the client, and the
// connection ends. served says that earlier requests were served here; what they have left, such as
// locks, cannot move, so the connection only ends.
func (p *Port) Move(c *netio.Conn, kind frame.MemberKind, served bool) (over bool, err error) {
	if !p.Forward.Away() {
		return false, nil
	}
	if served {
		return true, nil
	}
	switch denied, ok := errors.AsType[*access.Denied](c.Visitor.Service(0, p.name)); {
	case ok && denied.Remote:
		return false, nil // every request is refused, in its own form
	case ok && !denied.Unknown:
		return true, denied
	}
	c.Leave() // the primary may be long in coming
	return p.Forward.Move(c, kind, nil)
}

// Open returns the connection that reads from and writes to a socket, and may rest: see
// portserver.Service. It is stopped at the end of ctx, until unstop is called. Open completes o
// with the options that all connections of the port share.
func (p *Port) Open(ctx context.Context, socket net.Conn, resume func(), o netio.Options) (c *netio.Conn, unstop func() bool) {
	o.Timeout, o.Limits, o.Loops, o.Access = p.Timeout, p.Limits, p.Loops, p.Access
	c = netio.New(socket, p.buffers, o)
	c.Meter = p.Meter.NewRecorder(socket.RemoteAddr().String())
	c.Ending = ctx
	c.RestIn(resume)
	return c, context.AfterFunc(ctx, func() { _ = c.Stop(0) })
}

// Stop ends the connections and returns when their goroutines have ended.
func (p *Port) Stop() error {
	if p.server == nil {
		return nil
	}
	if err := p.server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Name implements Service.
func (p *Port) Name() string { return p.name }

// Requests implements Service.
func (p *Port) Requests() *metrics.Protocol { return p.requests }

// Connections implements Service.
func (p *Port) Connections() (open int, total uint64) {
	if p.server == nil {
		return 0, 0
	}
	return p.server.Conns(), p.server.Total()
}

// Standby is the error of a request that only the primary serves (package leader), on a server that
// is not the primary.
type Standby struct {
	Reason string // why this server is not the primary, and what can be done about it
}

// Error returns the reason.
func (s *Standby) Error() string { return s.Reason }
