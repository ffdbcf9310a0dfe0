package server

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"gotycoon/access"
	"gotycoon/internal/browser"
)

// AccessConfig is who may do what.
type AccessConfig struct {
	// Path is the access file (-access), see package access. Empty: everybody may do everything, but without Config.Host only peers on
	// this machine are served.
	Path string

	// Hosts are names of this server beside its addresses, and hosts whose pages may send requests, with commas between them
	// (-http-hosts); see package browser.
	Hosts string
}

// pages makes the policy for requests that pages make browsers send.
func (c *AccessConfig) pages() (*browser.Policy, error) {
	var hosts []string
	for name := range strings.SplitSeq(c.Hosts, ",") {
		if name = strings.TrimSpace(name); name != "" {
			hosts = append(hosts, name)
		}
	}
	p, err := browser.New(hosts)
	if err != nil {
		return nil, fmt.Errorf("-http-hosts: %w", err)
	}
	return p, nil
}

// accessEvery is how often the server looks whether the access file has changed.
const accessEvery = time.Second

// openAccess reads the access file. It reports whether the server can go on.
func (p *process) openAccess() bool {
	pages, err := p.cfg.Access.pages()
	if err != nil {
		p.log.error("%v", err)
		return false
	}
	p.pages = pages
	if p.cfg.Access.Path == "" && p.cfg.Host != "" {
		return true // somebody has decided
	}
	guard, err := access.Open(access.Options{Path: p.cfg.Access.Path, Logger: p.log.Logger})
	if err != nil {
		p.log.error("%v", err)
		return false
	}
	p.access = guard
	return true
}

// tellDatabases lets the guard know which databases are open.
func (p *process) tellDatabases() {
	var all []access.Database
	for i := range p.catalog.Len() {
		all = append(all, p.catalog.DB(i))
	}
	if p.catalog.Services() != nil {
		all = append(all, access.ServicesDatabase{})
	}
	p.access.Serves(all)
}

// tellProtection warns who wonders why nobody else is served. It is at the level of the other lines about what the server promises.
func (p *process) tellProtection() {
	if p.access.Protects() {
		p.log.info("protected: %s", access.OpenHint)
	}
}

// accessOn is the guard of a listener: one with an address of its own needs no protection by default.
func (p *process) accessOn(host string) *access.Guard {
	if host != "" && p.access.Protects() {
		return nil
	}
	return p.access
}

// proves reports whether there are credentials that can be right.
func (p *process) proves() bool { return p.access != nil && !p.access.Protects() }

// errAdminRemote is what peers on other machines are told by an admin listener that serves this machine only.
var errAdminRemote = &access.Denied{Remote: true, Reason: "the admin listener answers only clients on its own machine; " +
	"start the server with -access FILE to say who may do what, or give the listener an address of its own (-admin 0.0.0.0:PORT)"}

// adminAccess decides about requests to an admin listener. Config.Host opens the databases, but not the profiles and what else there is:
// without an address of its own and without an access file the listener serves this machine.
func (p *process) adminAccess(host string) (func(*http.Request, bool) error, error) {
	guard := p.accessOn(host)
	if guard == nil && host == "" {
		var err error
		if guard, err = access.Open(access.Options{Logger: p.log.Logger}); err != nil {
			return nil, err
		}
	}
	if !guard.Protects() {
		return guard.Authorize, nil
	}
	return func(r *http.Request, admin bool) error {
		if guard.Authorize(r, admin) != nil {
			return errAdminRemote
		}
		return nil
	}, nil
}
