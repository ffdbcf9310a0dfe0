package server

import (
	"fmt"
	"strconv"

	"gotycoon/replication"
	"gotycoon/services/leader"
)

// openRole finds out whether this server is the primary of the services. One with a master hears about that from the master.
func (p *process) openRole() error {
	d := p.catalog.Services()
	if d == nil {
		return nil
	}
	role, err := leader.Open(leader.Options{DB: d, SID: p.sid(), Logger: p.log.Logger})
	if err != nil {
		return fmt.Errorf("%s: %w", d.Expr(), err)
	}
	p.role = role
	if p.cfg.MasterHost != "" {
		return nil
	}
	if err := role.Alone(); err != nil { // the services say so to those who ask for something
		p.log.error("%v", err)
	}
	return nil
}

// sid is this server's ID in replication.
func (p *process) sid() uint16 { return uint16(max(p.cfg.ServerID, 0)) }

// claim makes this server the primary of the services; nil where it has none.
func (p *process) claim() func(force bool) error {
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

// unheard returns an error while this server follows a master, so that it is alive, and the primary is no follower of this one: it would hardly
// hear that another server is the primary, and go on.
func (p *process) unheard() error {
	sid, known := p.role.Primary()
	if p.follower == nil || !known || sid == p.sid() || p.follower.Status().State != replication.Streaming {
		return nil
	}
	for _, f := range p.replicas.list.List() {
		if f.SID == sid && f.Ours && !f.White {
			return nil
		}
	}
	return fmt.Errorf("server %d is the primary, and does not follow this one, so it would not hear of it and go on: end the replication first ('ktremotemgr tunerepl'), "+
		"when that server serves nobody any more; 'ktremotemgr tunerepl -primary -force' makes this one the primary as it is", sid)
}

// reportRole adds the rows about the services' primary, on servers that have a services' database (our own).
func (p *process) reportRole(rows map[string]string) {
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
