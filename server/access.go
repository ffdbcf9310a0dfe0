package server

import (
	"time"

	"gotycoon/access"
)

// AccessConfig is who may do what.
type AccessConfig struct {
	// Path is the access file (-access), see package access. Empty: everybody may do everything, but without Config.Host only peers on
	// this machine are served.
	Path string
}

// accessEvery is how often the server looks whether the access file has changed.
const accessEvery = time.Second

// openAccess reads the access file. It reports whether the server can go on.
func (p *process) openAccess() bool {
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
