package replication

import (
	"slices"

	"gotycoon/binproto/frame"
	"gotycoon/db"
	"gotycoon/ulog"
)

// Services takes what a master has of the services' database, of which only some is for another server to write. *primary.Role is the one that
// there is.
type Services interface {
	// Prepare looks at updates before they are stored. refresh tells that a copy of the master's database is to be fetched afterwards.
	Prepare(ups []ulog.Update) (refresh bool, err error)
	// Replicate stores updates as db.(*DB).Replicate does, as far as they are the master's to make. copied tells that they are of a copy.
	Replicate(p *db.Pending, ups []ulog.Update, note db.Noting, copied bool) error
	// CaughtUp is told that everything the master had is here, Alone that there is no master, or one without services.
	CaughtUp() error
	Alone() error
	// Partial is told whether a copy of the database has yet to come to its end.
	Partial(on bool)
}

// followed returns the indexes of the databases that this server takes updates for.
func (o *FollowerOptions) followed() []uint16 {
	dbs := make([]uint16, 0, o.Catalog.Len()+1)
	for i := range o.Catalog.Len() {
		dbs = append(dbs, uint16(i))
	}
	if o.Services != nil {
		dbs = append(dbs, db.ServicesIndex)
	}
	return dbs
}

// servesServices tells whether the master has a services' database. What a log has of one that is there no more is old, and never complete.
func (p *pull) servesServices() bool { return p.hello != nil && p.hello.Services }

// caughtUp tells the services that everything is here, unless they get nothing from this master.
func (p *pull) caughtUp() {
	if p.servesServices() && p.hello.SID != p.f.opts.SID {
		p.f.tellServices(Services.CaughtUp)
	}
}

// meetServices notes whether the master has a services' database. One that was not followed before, by this server or on this master, is to
// be copied.
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

// shared returns those that a master has as well.
func (f *Follower) shared(h *frame.Hello) []uint16 {
	return slices.DeleteFunc(slices.Clone(f.dbs), func(i uint16) bool { return !masterHas(h, i) })
}

func masterHas(h *frame.Hello, i uint16) bool {
	if i == db.ServicesIndex {
		return h.Services
	}
	return i < h.Databases
}

// store stores updates of one database.
func (f *Follower) store(p *db.Pending, index uint16, ups []ulog.Update, note db.Noting, copied bool) error {
	if index != db.ServicesIndex {
		return f.opts.Catalog.DB(int(index)).Replicate(p, ups, note)
	}
	refresh, err := f.opts.Services.Prepare(ups)
	if err != nil {
		return err
	}
	if refresh && !copied {
		f.refresh = true
		f.place.copyAgain(index) // note remembers that
	}
	return f.opts.Services.Replicate(p, ups, note, copied)
}

// refreshDue notes, where another server has become the primary of the services, that their database is to be copied.
func (f *Follower) refreshDue() {
	if part := f.place.part(db.ServicesIndex); f.refresh && (part == nil || part.copied) {
		f.place.copyAgain(db.ServicesIndex)
	}
}

// tellPartial tells the services whether their database is a whole one.
func (f *Follower) tellPartial() {
	if f.opts.Services != nil {
		part := f.place.part(db.ServicesIndex)
		f.opts.Services.Partial(f.refresh || part != nil && !part.copied)
	}
}

// recallPartial is tellPartial before there is a master: a copy that has not begun takes nothing from what is here.
func (f *Follower) recallPartial() {
	if f.opts.Services == nil {
		return
	}
	p, err := decodePlace(f.opts.Catalog.Services().Remembered())
	if part := p.part(db.ServicesIndex); err == nil && part != nil && !part.copied {
		f.opts.Services.Partial(true)
	}
}

// tellServices tells the services something about the master.
func (f *Follower) tellServices(what func(Services) error) {
	if f.opts.Services == nil {
		return
	}
	if err := what(f.opts.Services); err != nil {
		f.opts.Logger.Error(err.Error())
	}
}
