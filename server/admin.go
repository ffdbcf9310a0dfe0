package server

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gotycoon/access"
	"gotycoon/admin"
	"gotycoon/admin/exporter"
	"gotycoon/internal/browser"
	"gotycoon/internal/version"
)

// AdminConfig is the listener for those who run the server, and which requests are logged.
type AdminConfig struct {
	Addr     string        // HOST:PORT (-admin); empty: none
	ReadyLag time.Duration // the largest lag of a server that is ready (-ready-lag); 0: any
	Slow     time.Duration // requests that take longer are logged (-slow); 0: none
	Sample   int           // one of so many requests is logged, instead of each (-sample); 0: each

	ConsoleReadOnly bool // the console changes nothing (-console-read-only)

	// Listening is called with the address of the listener; nil: nobody wants to know.
	Listening func(addr string)
}

func (c *AdminConfig) check() error {
	return notBelowZero(amount("-ready-lag", c.ReadyLag), amount("-slow", c.Slow), amount("-sample", c.Sample))
}

// measures reports whether anybody wants to know about requests.
func (c *AdminConfig) measures() bool { return c.Addr != "" || c.Slow > 0 || c.Sample > 0 }

// mostAdminConns is how many connections the listener has at most: a few programs ask it, and
// people who look at the console, each with a handful of connections.
const mostAdminConns = 256

// host returns the host of the address, which is not empty.
func (c AdminConfig) host() (string, error) {
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return "", fmt.Errorf("-admin %s: write HOST:PORT, for example 127.0.0.1:1990, or :1990 for this machine only: %w", c.Addr, err)
	}
	return host, nil
}

// adminListener is the listener for those who run the server. It opens before the databases, so
// that it answers probes while they are restored, and closes after them.
type adminListener struct {
	server *admin.Server // nil without AdminConfig.Addr
	gate   admin.Gate    // closed before databases and services are
	log    logger
}

// adminOptions are what the listener needs from the start.
type adminOptions struct {
	AdminConfig
	Access   *access.Guard
	Pages    *browser.Policy // which requests of browsers are served
	Secure   func(net.Listener) net.Listener
	Started  time.Time
	MaxConns int // of each port
	Health   *health
	Routes   func(*admin.Server) // adds the paths of other parts
	Log      logger
}

// openAdmin starts the listener, if there shall be one.
func openAdmin(o adminOptions) (*adminListener, error) {
	a := &adminListener{log: o.Log}
	if o.Addr == "" {
		return a, nil
	}
	host, err := o.host()
	if err != nil {
		return nil, err
	}
	authorize, err := adminAccess(o.Access, host, o.Log)
	if err != nil {
		return nil, err
	}
	built := version.Current()
	a.server, err = admin.New(admin.Options{
		Addr:   o.Addr,
		Logger: o.Log.Logger,

		Authorize: authorize,
		Pages:     o.Pages,
		Proves:    proves(o.Access),
		Secure:    o.Secure,

		Routes:   o.Routes,
		Live:     o.Health.live,
		Ready:    o.Health.ready,
		Reads:    o.Health.readyToRead,
		Notes:    o.Health.notes,
		Primary:  o.Health.primary,
		Replica:  o.Health.replica,
		MaxConns: min(o.MaxConns, mostAdminConns),
		Version:  built.Version,
		Revision: built.Revision,

		CommandLine: commandLine(os.Args),
		Collectors: exporter.Process(exporter.Server{
			Version: built.Version, Revision: built.Revision, Started: o.Started,
			Ready: func() bool { return len(o.Health.ready()) == 0 },
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("-admin %s: %w", o.Addr, err)
	}
	a.server.Start()
	a.log.system("admin listener started: expr=%s", a.server.Addr())
	if o.Listening != nil {
		o.Listening(a.server.Addr().String())
	}
	return a, nil
}

// publish adds metrics that are read while the gate is open.
func (a *adminListener) publish(all ...prometheus.Collector) {
	for _, c := range all {
		if err := a.server.Register(a.gate.Collector(c)); err != nil {
			a.log.error("%v", err)
		}
	}
}

func (a *adminListener) close() {
	if a.server == nil {
		return
	}
	if err := a.server.Close(); err != nil {
		a.log.error("closing the admin listener: %v", err)
	}
}
