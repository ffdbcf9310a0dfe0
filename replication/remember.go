package replication

import (
	"fmt"
	"slices"
	"time"

	"gotycoon/db"
	"gotycoon/ulog"
)

// This file reads the follower's place at the start, and writes the position into the RTS file from
// time to time. (*pull).note remembers the place together with the updates. See "Positions of a
// follower" in doc.go.

// recall finds out at the start where the follower is. said is what the RTS file says.
//
// If this program wrote said into the RTS file, the places that the databases remember count: they
// belong exactly to the data that a crash has left. Otherwise somebody has written another position
// into the file, and the follower goes on from there, as the original does. In a cluster nobody is
// to write into it: what is remembered tells what this server has acknowledged, and always counts.
func (f *Follower) recall(said ulog.Stamp) place {
	states := map[uint16]*place{}
	known, ours := false, f.opts.Cluster
	for _, i := range f.dbs {
		d := f.opts.Catalog.Numbered(int(i))
		state := d.Info().Remembered
		if state == nil {
			continue
		}
		p, err := decodePlace(state)
		if err != nil {
			f.opts.Logger.Warn(fmt.Sprintf("%s: %v", d.Info().Path, err))
			continue
		}
		states[i], known = &p, true
		ours = ours || p.rts[0] == said || p.rts[1] == said
	}
	if !ours {
		if known {
			f.opts.Logger.Info(fmt.Sprintf("the RTS file has been changed: replication goes on from ts=%d", said))
		}
		clear(states)
	}
	return f.combine(states, said)
}

// combine makes one place of the places that the databases remember. A database that remembers none
// is at the stamp in the RTS file. A database that lacks what belongs to its stamp is to be copied,
// if the master can give a copy.
func (f *Follower) combine(states map[uint16]*place, said ulog.Stamp) place {
	p := place{rts: [2]ulog.Stamp{said, said}, position: said, dbs: uint16(f.opts.Catalog.Len()), services: f.opts.Services != nil}
	first := true
	for _, i := range f.dbs {
		s := states[i]
		at, complete := said, true
		if s != nil && s.covers(i) {
			at, complete = s.has(i)
		}
		switch {
		case lacks(f.opts.Catalog.Numbered(int(i)), s, at, len(states) > 0):
			p.parts = append(p.parts, part{db: i})
			continue
		case !complete:
			p.parts = append(p.parts, *s.part(i))
		case p.position > at || first:
			p.position = at
			first = false
		}
	}
	for _, i := range f.dbs {
		p.ahead(i, states[i])
	}
	for _, i := range f.dbs {
		p.takeMarks(states[i])
	}
	p.vague = slices.ContainsFunc(p.parts, part.begun)
	return p
}

// lacks reports whether a database has lost, or never had, the updates up to at. s is the place
// that it remembers, nil for none; others says that some database remembers a place.
//
// The services' database is copied whenever it remembers no place, even at the very beginning. It
// may hold records that this server wrote in an earlier life, above all a claim to be the primary,
// and a master's stream never removes these.
func lacks(d *db.DB, s *place, at ulog.Stamp, others bool) bool {
	switch {
	case d.Index() == db.ServicesIndex:
		return s == nil || !s.covers(db.ServicesIndex)
	case at == 0:
		return false
	case d.Info().Volatile && empty(d): // in memory: the end of the process has emptied it
		return true
	case s != nil: // the place may be of a time when the database did not exist
		return !s.covers(uint16(d.Index()))
	}
	return others && empty(d) // a new database beside others
}

func empty(d *db.DB) bool {
	n, err := d.Count(nil)
	return err == nil && n == 0
}

// ahead adds a part for a database that has more than the position says.
func (p *place) ahead(db uint16, s *place) {
	if s == nil || !s.covers(db) || p.part(db) != nil {
		return
	}
	if at, complete := s.has(db); complete && at > p.position {
		p.parts = append(p.parts, part{db: db, copied: true, at: at})
	}
}

// takeMarks adds what a database remembers of the master and of other logs. meet says how the
// memories of several databases are combined.
func (p *place) takeMarks(s *place) {
	switch {
	case s == nil:
	case p.marks == nil:
		p.master, p.marks = s.master, s.marks
		p.copied = s.copied
		p.seen, p.seenBy, p.sid, p.sidKnown, p.amends = s.seen, s.seenBy, s.sid, s.sidKnown, s.amends
	default:
		p.meet(s)
	}
	if s != nil && s.base.Own > p.base.Own {
		p.base = s.base
	}
}

// remember notes the encoded place that the databases remember from now on.
func (f *Follower) remember(state []byte) {
	f.good = state
	f.known.Store(&state)
}

// beginAt forgets the former master, and goes on from a position in the log of any master.
func (f *Follower) beginAt(at ulog.Stamp) {
	f.place = place{position: at, rts: f.place.rts, dbs: f.place.dbs, services: f.place.services}
	if f.opts.Services != nil { // the skipped updates may contain another server's claim
		f.place.copyAgain(db.ServicesIndex)
	}
	f.status.position.Store(uint64(at))
	f.save()
}

// advance moves the position on, and begins to write it into the RTS file when that is due.
func (f *Follower) advance(to ulog.Stamp) {
	f.place.advance(to)
	f.status.position.Store(uint64(f.place.position))
	f.arrivals.wake()
	pause := idleEvery
	if f.moved || !f.remembers() {
		pause = saveEvery
	}
	if time.Since(f.saved) >= pause && f.pollSaving() {
		f.beginSaving()
	}
}

// remembers reports whether some database can remember a place with its data. Otherwise there is
// only the RTS file.
func (f *Follower) remembers() bool {
	for _, i := range f.dbs {
		if f.opts.Catalog.Numbered(int(i)).Info().Remembers {
			return true
		}
	}
	return false
}

// save writes the position into the RTS file and returns when it is durable.
func (f *Follower) save() {
	f.awaitSaving()
	f.beginSaving()
	f.awaitSaving()
}

// beginSaving appends a position record to the logs, with the old and the new text of the RTS file.
// Then it starts a goroutine that syncs the logs and writes the position into the RTS file. The
// sync makes the record durable together with all updates up to the position, so after a crash
// recall accepts either text of the file. Updates do not wait for the disk meanwhile.
func (f *Follower) beginSaving() {
	f.saved, f.moved = time.Now(), false
	at, before := f.place.position, f.place.rts
	f.place.rts = [2]ulog.Stamp{at, f.rts.saved}
	state := f.place.encode()
	if at == f.rts.saved && string(state) == string(f.good) {
		return
	}
	if err := f.opts.Catalog.Remember(state); err != nil {
		f.place.rts = before
		f.failedToSave(err)
		return
	}
	f.remember(state)
	f.saving = make(chan error, 1)
	f.done.Go(func() {
		err := f.opts.Catalog.SyncLogs()
		if err == nil {
			err = f.rts.save(at)
		}
		f.saving <- err
	})
}

// awaitSaving waits for the goroutine of beginSaving, if there is one.
func (f *Follower) awaitSaving() {
	if f.saving != nil {
		f.endSaving(<-f.saving)
	}
}

// pollSaving reports whether nobody writes the RTS file now. It does not wait.
func (f *Follower) pollSaving() bool {
	if f.saving == nil {
		return true
	}
	select {
	case err := <-f.saving:
		f.endSaving(err)
		return true
	default:
		return false
	}
}

func (f *Follower) endSaving(err error) {
	f.saving = nil
	if err != nil {
		f.failedToSave(err)
	}
}

func (f *Follower) failedToSave(err error) {
	f.opts.Logger.Error(fmt.Sprintf("writing the RTS file: %v", err))
}
