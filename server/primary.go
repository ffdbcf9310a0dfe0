package server

import (
	"fmt"
	"strconv"

	"gotycoon/db"
	"gotycoon/services/leader"
)

// primary is this server's part in which server is the primary of the services.
type primary struct {
	role      *leader.Role // nil without a services' database
	sid       uint16
	following *following
	replicas  *replicas
}

// openRole finds out whether this server is the primary of the services. A server with a master has
// to hear from the master first whether another server is. openRole returns nil without a services'
// database.
func openRole(d *db.DB, sid uint16, hasMaster, cluster bool, log logger) (*leader.Role, error) {
	if d == nil {
		return nil, nil // no database, no role
	}
	role, err := leader.Open(leader.Options{DB: d, SID: sid, Logger: log.Logger, Cluster: cluster})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Info().Expr, err)
	}
	if hasMaster {
		return role, nil
	}
	// After an error the services start all the same, and refuse calls with this reason.
	if err := role.Alone(); err != nil {
		log.error("%v", err)
	}
	return role, nil
}

// claim returns the function that makes this server the primary of the services, nil without a
// services' database. Without force, the function refuses what could leave two primaries.
func (p *primary) claim() func(force bool) error {
	if p.role == nil {
		return nil
	}
	return func(force bool) error {
		if err := p.unheard(); err != nil && !force {
			return err
		}
		return p.role.Claim(force)
	}
}

// unheard refuses the promotion while the current primary is alive but does not follow this server:
// it would not learn of the promotion and would keep serving, so there would be two primaries.
func (p *primary) unheard() error {
	sid, known := p.role.Primary()
	if !known || sid == p.sid || !p.following.streams() || p.replicas.serves(sid) {
		return nil
	}
	return fmt.Errorf("server %d is the primary, and does not follow this one, so it would not hear of it and go on: end the replication first ('ktremotemgr tunerepl'), "+
		"when that server serves nobody any more; 'ktremotemgr tunerepl -primary -force' makes this one the primary as it is", sid)
}

// report adds the rows about the primary of the services, on servers with a services' database. The
// original has no such rows.
func (p *primary) report(rows map[string]string) {
	if p.role == nil {
		return
	}
	_, err := p.role.Term()
	rows["serv_primary"] = strconv.FormatBool(err == nil)
	if err != nil {
		rows["serv_standby"] = err.Error()
	}
	if sid, ok := p.role.Primary(); ok {
		rows["serv_primary_sid"] = strconv.Itoa(int(sid))
	}
}
