package server

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/internal/browser"
)

// AccessConfig is who may do what.
type AccessConfig struct {
	// Path is the access file (-access), see package access. Empty: everybody may do everything,
	// but without Config.Host only peers on this machine are served.
	Path string

	// Hosts are names of this server beside its addresses, and hosts whose pages may send requests,
	// with commas between them (-http-hosts); see package browser.
	Hosts string
}

// pages returns the policy for requests that web pages make browsers send.
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

// openAccess reads the access file. The guard is nil where everybody may do everything: without an
// access file, on a server with an address of its own, host. Somebody has decided then who reaches
// the server.
func openAccess(c AccessConfig, host string, log logger) (*access.Guard, error) {
	if c.Path == "" && host != "" {
		return nil, nil // no guard, no error
	}
	return access.Open(access.Options{Path: c.Path, Logger: log.Logger})
}

// tellDatabases lets the guard know which databases are open.
func tellDatabases(g *access.Guard, c *db.Catalog) {
	var all []access.Database
	for i := range c.Len() {
		all = append(all, c.DB(i))
	}
	if c.Services() != nil {
		all = append(all, access.ServicesDatabase{})
	}
	g.Serves(all)
}

// tellProtection tells the reader of the log why clients on other machines are refused. The line
// has the level of the other lines about what the server promises.
func tellProtection(g *access.Guard, log logger) {
	if g.Protects() {
		log.info("protected: %s", access.OpenHint)
	}
}

// accessOn returns the guard of a port: a port with an address of its own needs no protection by
// default.
func accessOn(g *access.Guard, host string) *access.Guard {
	if host != "" && g.Protects() {
		return nil
	}
	return g
}

// proves reports whether the guard checks credentials, so that a request with credentials has
// proved who sends it.
func proves(g *access.Guard) bool { return g != nil && !g.Protects() }

// errAdminRemote is what peers on other machines are told by an admin listener that serves this
// machine only.
var errAdminRemote = &access.Denied{Remote: true, Reason: "the admin listener answers only clients on its own machine; " +
	"start the server with -access FILE to say who may do what, or give the listener an address of its own (-admin 0.0.0.0:PORT)"}

// adminAccess returns the function that decides about requests to an admin listener with a host of
// its own, or "". -host opens the databases to other machines, but not the profiles and whatever
// else the listener has: without an address of its own and without an access file it serves this
// machine.
func adminAccess(g *access.Guard, host string, log logger) (func(*http.Request, bool) error, error) {
	guard := accessOn(g, host)
	if guard == nil && host == "" {
		var err error
		if guard, err = access.Open(access.Options{Logger: log.Logger}); err != nil {
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
