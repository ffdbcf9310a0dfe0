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
	// Follow stores updates as db.(*DB).Follow does, as far as they are the master's to make. copied tells that they are of a copy.
	Follow(p *db.Pending, ups []ulog.Update, note db.Noting, copied bool) error
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
		return f.opts.Catalog.DB(int(index)).Follow(p, ups, note)
	}
	refresh, err := f.opts.Services.Prepare(ups)
	if err != nil {
		return err
	}
	if refresh && !copied {
		f.refresh = true
		f.place.copyAgain(index) // note remembers that
	}
	return f.opts.Services.Follow(p, ups, note, copied)
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

// tellServices tells the services something about the master.
func (f *Follower) tellServices(what func(Services) error) {
	if f.opts.Services == nil {
		return
	}
	if err := what(f.opts.Services); err != nil {
		f.opts.Logger.Error(err.Error())
	}
}
