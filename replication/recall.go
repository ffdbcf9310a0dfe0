package replication

import (
	"fmt"

	"gotycoon/db"
	"gotycoon/ulog"
)

// recall finds out where the follower is, from what the databases remember and what the RTS file says.
//
// As long as the file says what this program has written there, what is remembered with the data counts: it is exact whatever a crash has
// taken. When it says anything else, somebody has set a position there, and gets it, as from the original.
func (f *Follower) recall(said ulog.Stamp) place {
	states := map[uint16]*place{}
	known, ours := false, false
	for _, i := range f.dbs {
		d := f.opts.Catalog.Numbered(int(i))
		state := d.Remembered()
		if state == nil {
			continue
		}
		p, err := decodePlace(state)
		if err != nil {
			f.opts.Logger.Warn(fmt.Sprintf("%s: %v", d.Path(), err))
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

// combine makes one place of those that the databases have. A database without one is where the RTS file says. One in memory that has come
// up empty has lost what it had, and one that is new beside others never had it: it needs a copy, if there will be a master that gives one.
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
	return p
}

// lacks tells whether a database has not what belongs to a position. s is where it is, nil where it does not know; others tells that some
// database knows.
//
// The services' one is copied wherever it does not know where it is, also at the beginning: what this server wrote into it in an earlier life,
// its claim above all, never comes in a stream.
func lacks(d *db.DB, s *place, at ulog.Stamp, others bool) bool {
	switch {
	case d.Index() == db.ServicesIndex:
		return s == nil || !s.covers(db.ServicesIndex)
	case at == 0:
		return false
	case lost(d):
		return true
	case s != nil: // what its log remembers may be of a time when it was not there
		return !s.covers(uint16(d.Index()))
	}
	return others && empty(d)
}

// lost tells whether a database in memory has come up with nothing.
func lost(d *db.DB) bool { return d.Volatile() && empty(d) }

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

// takeMarks takes over the marks of a database. What all have counts.
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
}
