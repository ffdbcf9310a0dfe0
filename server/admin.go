package server

import (
	"errors"
	"fmt"
	"net"
	"time"

	"gotycoon/admin"
	"gotycoon/admin/api"
	"gotycoon/admin/exporter"
	"gotycoon/internal/metrics"
)

// AdminConfig is the listener for those who run the server, and what is noted about requests.
type AdminConfig struct {
	Addr     string        // HOST:PORT (-admin); empty: none
	ReadyLag time.Duration // further behind its master the server is not ready (-ready-lag); 0: it does not matter
	Slow     time.Duration // requests that take longer are logged (-slow); 0: none
	Sample   int           // of so many requests one is logged, instead of each (-sample); 0: each

	ConsoleReadOnly bool // the console changes nothing (-console-read-only)

	// Listening is called with the address of the listener; nil: nobody wants to know.
	Listening func(addr string)
}

func (c *AdminConfig) check() error {
	switch {
	case c.ReadyLag < 0:
		return errors.New("the lag of a server that is ready cannot be negative")
	case c.Slow < 0:
		return errors.New("the time of slow requests cannot be negative")
	case c.Sample < 0:
		return errors.New("the number of requests of which one is logged cannot be negative")
	}
	return nil
}

// measures tells whether anybody wants to know about requests.
func (c *AdminConfig) measures() bool { return c.Addr != "" || c.Slow > 0 || c.Sample > 0 }

// productVersion is what this server calls itself where no client of the original reads it.
const productVersion = "1.0"

// adminState is the admin listener and what it looks at.
type adminState struct {
	server *admin.Server // nil without AdminConfig.Addr
	phase  phase
	gate   admin.Gate // closed before databases and services are
	meter  *metrics.Meter
	meters meters
	api    *api.API // what the console asks; nil without a listener
}

// host returns the host of the address, which is not empty.
func (c AdminConfig) host() (string, error) {
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return "", fmt.Errorf("-admin %s: write HOST:PORT, for example 127.0.0.1:1990, or :1990 for this machine only: %w", c.Addr, err)
	}
	return host, nil
}

// openAdmin starts the admin listener, before anything that takes long.
func (p *process) openAdmin() error {
	c := p.cfg.Admin
	p.admin.phase.set("starting: the databases are being opened or restored")
	if c.measures() {
		p.admin.meter = metrics.New(metrics.Options{Slow: c.Slow, Sample: c.Sample, Logger: p.log.Logger})
		p.admin.meters = p.newMeters()
	}
	if c.Addr == "" {
		return nil
	}
	host, err := c.host()
	if err != nil {
		return err
	}
	authorize, err := p.adminAccess(host)
	if err != nil {
		return err
	}
	s, err := admin.New(admin.Options{
		Addr:   c.Addr,
		Logger: p.log.Logger,

		Authorize: authorize,
		Pages:     p.pages,
		Proves:    p.proves(),
		Secure:    p.secure,

		Routes:  p.adminRoutes,
		Live:    p.live,
		Ready:   p.ready,
		Reads:   p.readyToRead,
		Version: productVersion,
		Collectors: exporter.Process(exporter.Server{
			Version: productVersion, Revision: admin.Revision(), Started: p.started,
			Ready: func() bool { return len(p.ready()) == 0 },
		}),
	})
	if err != nil {
		return fmt.Errorf("-admin %s: %w", c.Addr, err)
	}
	p.admin.server = s
	s.Start()
	p.log.system("admin listener started: expr=%s", s.Addr())
	if c.Listening != nil {
		c.Listening(s.Addr().String())
	}
	return nil
}

// adminRoutes adds the paths of the parts that have some. The databases are not open yet.
func (p *process) adminRoutes(s *admin.Server) { p.mountConsole(s) }

// shutAdmin says that databases and services are about to be closed: from now on nobody looks at them.
func (p *process) shutAdmin() {
	p.admin.phase.set("stopping")
	p.admin.gate.Close()
	p.closeConsole()
}

func (p *process) closeAdmin() {
	if p.admin.server == nil {
		return
	}
	if err := p.admin.server.Close(); err != nil {
		p.log.error("closing the admin listener: %v", err)
	}
}
