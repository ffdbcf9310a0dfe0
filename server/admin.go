package server

import (
	"fmt"

	"gotycoon/admin"
)

// AdminConfig is the listener for those who run the server.
type AdminConfig struct {
	Addr string // HOST:PORT (-admin); empty: none
}

// openAdmin starts the admin listener, before anything that takes long.
func (p *process) openAdmin() error {
	if p.cfg.Admin.Addr == "" {
		return nil
	}
	s, err := admin.New(admin.Options{
		Addr:   p.cfg.Admin.Addr,
		Logger: p.log.Logger,
		Routes: p.adminRoutes,
	})
	if err != nil {
		return fmt.Errorf("-admin %s: %w", p.cfg.Admin.Addr, err)
	}
	p.admin = s
	s.Start()
	p.log.system("admin listener started: expr=%s", s.Addr())
	return nil
}

// adminRoutes adds the paths of the parts that have some. The databases are not open yet.
func (p *process) adminRoutes(*admin.Server) {}

func (p *process) closeAdmin() {
	if p.admin == nil {
		return
	}
	if err := p.admin.Close(); err != nil {
		p.log.error("closing the admin listener: %v", err)
	}
}
