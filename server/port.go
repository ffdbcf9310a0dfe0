package server

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"gotycoon/access"
	"gotycoon/binproto"
	"gotycoon/db"
	"gotycoon/httpapi"
	"gotycoon/internal/browser"
	"gotycoon/internal/netio"
	"gotycoon/internal/opcount"
	"gotycoon/internal/portserver"
	"gotycoon/replication"
)

// stopRunning is what requests in execution have left at a stop before idle connections are closed.
const stopRunning = 100 * time.Millisecond

var errNoNetwork = errors.New("the network configuration is not set")

// dataPort is the port for databases: HTTP and the binary protocol, and plaintext on a port beside
// it where the port speaks TLS. It listens again after each restart, with new handlers, since the
// script may be another one then.
type dataPort struct {
	dataPortOptions
	server   *portserver.Server
	signals  *httpapi.Signals
	stopping chan struct{} // closed at a stop
}

// dataPortOptions are what the port and its protocols need.
type dataPortOptions struct {
	Host      string // as an IPv4 address, or empty
	Port      int    // 0: any free one, which stays the same from then on
	PlainPort int    // without TLS; 0: none
	Timeout   time.Duration
	MaxConns  int
	Watches   int // at a time
	CmdDir    string
	Console   string // address of the admin listener; empty: there is none
	SID       uint16
	Now       func() time.Time // clock of the update log; nil: time.Now

	Retention RetentionConfig
	Catalog   *db.Catalog
	Shared    *sharedEngine // nil: the databases are this server's alone
	Scripts   *scripts
	Following *following
	Replicas  *replicas
	Cluster   *clusterNode
	Primary   *primary
	Settings  *settings
	Report    func(rows map[string]string)

	Counts  *opcount.Counts
	Traffic *traffic
	Limits  *netio.Limits
	Loops   *netio.Loops // nil: each connection has a goroutine
	Access  *access.Guard
	Members *members
	Forward *netio.Forward
	Pages   *browser.Policy
	Meters  *meters
	Secure  func(net.Listener) net.Listener
	Log     logger
}

// start opens the port and begins to accept connections. The error is the text of a log line.
func (p *dataPort) start() error {
	if p.Timeout <= 0 {
		p.Log.system("starting the server: expr=")
		return errNoNetwork
	}
	p.Log.system("starting the server: expr=%s:%d", p.Host, p.Port)
	if p.Port > MaxPort && p.server == nil { // a free one that the system has chosen may be larger
		return badAddress(p.Host, p.Port)
	}
	socket, err := bind(p.Host, p.Port)
	if err != nil {
		return err
	}
	p.Port = int(netip.MustParseAddrPort(socket.Addr().String()).Port())
	var plain *net.TCPListener
	if p.PlainPort != 0 {
		if plain, err = bind(p.Host, p.PlainPort); err != nil {
			socket.Close()
			return err
		}
		p.Log.system("plaintext port opened: expr=%s:%d", p.Host, p.PlainPort)
	}
	logOpened(p.Log, socket, p.Host, p.Port, p.Timeout)
	p.signals, p.stopping = p.Shared.signals(), make(chan struct{})
	d := p.door()
	p.server = portserver.Start(bare(p.Secure(socket), p.Loops), portserver.Options{
		NewSession: func(c net.Conn) portserver.Session { return d.newConn(c) },
		MaxConns:   p.MaxConns,
		Full:       func(refused int) { p.Log.error("too many connections: limit=%d refused=%d", p.MaxConns, refused) },
		Failed:     func(err error) { p.Log.error("accepting a connection: %v", err) },
		Logger:     p.Log.Logger,
	})
	if plain != nil {
		p.server.Add(bare(plain, p.Loops))
	}
	return nil
}

// door makes the handlers of the protocols.
func (p *dataPort) door() *door {
	source := p.Replicas.source(p.feeding())
	return &door{
		http: httpapi.NewHandler(httpapi.Options{
			Catalog:  p.Catalog.View,
			Counts:   p.Counts,
			Signals:  p.signals,
			Shared:   p.Shared != nil,
			Scripts:  p.Scripts.http(),
			Follower: p.Following.clients(),
			Forward:  p.Forward,
			Claim:    p.Primary.claim(),
			Replicas: p.Replicas,
			Watches:  forWatchers(source), MaxWatches: p.Watches,
			Cluster: p.Cluster.clients(),
			Config:  p.Settings.clients(),
			NoData:  p.Cluster.noData(),
			Meters:  p.Meters.http,
			Pages:   p.Pages,
			Logger:  p.Log.Logger,
			Port:    p.Port,
			CmdDir:  p.CmdDir,
			Console: p.Console,
			Report:  p.Report,
		}),
		bin: binproto.NewHandler(binproto.Options{
			Catalog:  p.Catalog.View,
			Services: p.Catalog.Services(),
			Counts:   p.Counts,
			Scripts:  p.Scripts.binary(),
			Source:   forFollowers(source),
			Shared:   p.Shared != nil,
			NoData:   p.Cluster.noData(),
			Forward:  p.Forward,
			Meters:   p.Meters.bin,
			Logger:   p.Log.Logger,
		}),
		pool:    netio.NewPool(),
		limits:  p.Limits,
		loops:   p.Loops,
		access:  p.Access,
		members: p.Members,
		meter:   p.Meters.meter,
		traffic: p.Traffic,
		log:     p.Log,
	}
}

// feeding returns what followers of this server are fed with.
func (p *dataPort) feeding() replication.SourceOptions {
	o := replication.SourceOptions{
		Log: p.Catalog.Log(), SID: p.SID, Databases: p.Catalog.Len(), Services: p.Primary.role != nil, Done: p.stopping,
		Past: replication.PastOf(p.Following.follower, p.Catalog), Logger: p.Log.Logger, Now: p.Now,
		Away: max(p.Retention.SlaveTime, 1), Most: p.Retention.SlaveSize,
	}
	if p.Cluster != nil {
		o.Members, o.Term, o.Made, o.Lineage = true, p.Cluster.Term, p.Cluster.Made, p.Following.follower.Lineage
		o.Follows, o.Lost, o.Position = p.Cluster.Follows, p.Cluster.Lost, p.Following.follower.Position
	}
	return o
}

// Addr returns the address of the port.
func (p *dataPort) Addr() net.Addr { return p.server.Addr() }

// stop ends the connections and closes the port. Requests being served are finished, waiting
// clients are told that their time is up, and a half received request has a short grace, however
// long the timeout is. Followers that do not take the rest of their updates within the grace are
// cut, and when the timeout has passed everybody is.
func (p *dataPort) stop() {
	p.Log.system("server stopped")
	close(p.stopping)
	p.server.StopAccepting()
	p.Log.system("finishing the server")
	p.signals.Shutdown()
	slow := time.AfterFunc(p.Timeout, func() {
		p.server.Each(portserver.Session.Cut)
		p.Scripts.stopCalls()
		p.Catalog.EndCopies()
	})
	stalled := time.AfterFunc(stopGrace, func() {
		p.server.Each(func(s portserver.Session) { s.(*conn).cutFollower() })
		p.Replicas.endWaits()
	})
	p.finishRunning()
	p.server.Each(portserver.Session.Stop)
	p.server.Wait()
	slow.Stop()
	stalled.Stop()
	p.Log.system("closing the server socket")
	_ = p.server.Close() // nobody uses the sockets any more
}

// finishRunning stops the connections with a request being served, and waits a moment for them: the
// log has tidier lines when their requests come before the ends of idle connections.
func (p *dataPort) finishRunning() {
	var running []*conn
	p.server.Each(func(s portserver.Session) {
		if c := s.(*conn); c.busy.Load() {
			c.Stop()
			running = append(running, c)
		}
	})
	late := time.After(stopRunning)
	for _, c := range running {
		select {
		case <-c.ended:
		case <-late:
			return
		}
	}
}
