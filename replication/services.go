package replication

import (
	"gotycoon/client/wire/frame"
	"gotycoon/db"
)

// The services (locks, quotas, sequences) keep their records in one more database. Only a server
// that serves them has it, and only some of its records are the master's to write: see Services.

// servesServices reports whether the master has a services' database. A master that no longer has
// the database may still have updates of it in its log. They are old and incomplete, and must not
// be applied.
func (p *pull) servesServices() bool { return p.hello != nil && p.hello.Services }

// caughtUp tells the services that everything is here, unless they get nothing from this master.
func (p *pull) caughtUp() {
	if p.servesServices() && p.hello.SID != p.f.opts.SID {
		p.f.tellServices(Services.CaughtUp)
	}
}

// meetServices notes whether the master has a services' database. If this server has not followed
// a master's services' database before, it is to be copied from the master.
func (p *pull) meetServices() {
	f := p.f
	if !p.servesServices() {
		f.refresh, f.place.services = false, false
		f.place.without(func(i uint16) bool { return i != db.ServicesIndex })
		f.tellServices(Services.Alone)
		return
	}
	if f.opts.Services != nil && !f.place.services {
		f.place.services = true
		f.place.copyAgain(db.ServicesIndex)
	}
}

// meetDatabases forgets copies of databases that the master does not have, and adds the copy of the
// services' database that Services.Prepare has asked for.
func (p *pull) meetDatabases(hello *frame.Hello) {
	f := p.f
	if part := f.place.part(db.ServicesIndex); f.refresh && (part == nil || part.copied) {
		f.place.copyAgain(db.ServicesIndex)
	}
	f.place.without(func(db uint16) bool { return masterHas(hello, db) })
	if hello.Services {
		f.tellPartial()
	}
}

// tellPartial tells the services whether their database still waits for a copy to be completed.
func (f *Follower) tellPartial() {
	if f.opts.Services != nil {
		part := f.place.part(db.ServicesIndex)
		f.opts.Services.Partial(f.refresh || part != nil && !part.copied)
	}
}

// recallPartial is tellPartial before there is a master. It asks what the database remembers, not
// the place that recall has made: a copy that recall wants has not begun, and has removed nothing.
func (f *Follower) recallPartial() {
	if f.opts.Services == nil {
		return
	}
	p, err := decodePlace(f.opts.Catalog.Services().Info().Remembered)
	if part := p.part(db.ServicesIndex); err == nil && part != nil && !part.copied {
		f.opts.Services.Partial(true)
	}
}

// tellServices calls a method of the services, if there are any.
func (f *Follower) tellServices(what func(Services) error) {
	if f.opts.Services == nil {
		return
	}
	if err := what(f.opts.Services); err != nil {
		f.opts.Logger.Error(err.Error())
	}
}
