package replication

import (
	"maps"
	"slices"

	"gotycoon/db"
	"gotycoon/ulog"
)

// maxMarks is how many logs have a mark. The one with the oldest stamp is forgotten for a new one.
const maxMarks = 256

// covers reports whether a database existed when the place was remembered.
func (p *place) covers(i uint16) bool {
	if i == db.ServicesIndex {
		return p.services
	}
	return i < p.dbs
}

// has returns the stamp up to which a database has every update. ok is false for a database that is
// still to be copied.
func (p *place) has(db uint16) (at ulog.Stamp, ok bool) {
	for _, part := range p.parts {
		if part.db == db {
			return max(part.at, p.position), part.copied
		}
	}
	return p.position, true
}

// needs returns the oldest stamp behind which one of these databases needs the master's log. A
// database whose copy has not begun needs nothing yet: the copy will have its own instant.
func (p *place) needs(dbs []uint16) ulog.Stamp {
	needs, any := ulog.Stamp(0), false
	for _, i := range dbs {
		at := p.position
		if part := p.part(i); part != nil {
			at = part.at
			if part.copied {
				at = max(at, p.position)
			} else if at == 0 {
				continue
			}
		}
		if !any || at < needs {
			needs, any = at, true
		}
	}
	if !any {
		return p.position
	}
	return needs
}

// part returns the part about a database, nil if there is none.
func (p *place) part(db uint16) *part {
	for i := range p.parts {
		if p.parts[i].db == db {
			return &p.parts[i]
		}
	}
	return nil
}

// incomplete returns the part about the first database that is still to be copied, nil if there is
// none.
func (p *place) incomplete() *part {
	for i := range p.parts {
		if !p.parts[i].copied {
			return &p.parts[i]
		}
	}
	return nil
}

// copyAll notes that these databases are to be copied from their beginning, and forgets all other
// parts. An unfinished copy cannot go on: the updates between its instant and now are out of reach.
func (p *place) copyAll(dbs []uint16) {
	p.parts = nil
	for _, i := range dbs {
		p.parts = append(p.parts, part{db: i})
	}
}

// copyAgain notes that one database is to be copied from its beginning.
func (p *place) copyAgain(db uint16) {
	p.parts = slices.DeleteFunc(p.parts, func(part part) bool { return part.db == db })
	p.parts = append(p.parts, part{db: db})
}

// leaveLog forgets the stamps of parts when another log is followed from now on: they are stamps of
// the former log. Databases whose copy is unfinished are copied from their beginning.
func (p *place) leaveLog() {
	p.parts = slices.DeleteFunc(p.parts, func(part part) bool { return part.copied })
	for i := range p.parts {
		p.parts[i].at, p.parts[i].key = 0, nil
	}
}

// without forgets the parts about databases that the master does not have: nothing can be copied.
func (p *place) without(has func(db uint16) bool) {
	p.parts = slices.DeleteFunc(p.parts, func(part part) bool { return !has(part.db) })
}

// advance moves the position on. A database that was ahead of the position ceases to be a part when
// the position has reached its stamp.
func (p *place) advance(to ulog.Stamp) {
	p.position = max(p.position, to)
	if len(p.parts) > 0 {
		p.parts = slices.DeleteFunc(p.parts, func(part part) bool { return part.copied && part.at <= p.position })
	}
}

// finishCopies moves the position after copies, whose instants differ. If all databases were
// copied, the position becomes the oldest of the instants, and may go back: the log is then
// followed from the first copy on. Otherwise databases that were not copied still need the log from
// the present position on, and the copied ones stay parts until the position has reached their
// instants.
func (p *place) finishCopies(all bool) {
	if all && len(p.parts) > 0 {
		p.position = p.parts[0].at
		for _, part := range p.parts {
			p.position = min(p.position, part.at)
		}
	}
	p.advance(0)
}

// copying notes the instant of a copy that begins, and the newest update in the master's log at
// that instant. From now on the master's log must have both, see parted.go.
func (p *place) copying(instant, newest ulog.Stamp, by uint16) {
	p.copied = max(p.copied, instant)
	p.vague = p.vague || newest == 0
	if newest > p.seen {
		p.seen, p.seenBy = newest, by
	}
}

// upToCopies notes that every update in the master's log up to the position is in the copies. The
// mark is the newest of them where that is known, because a position between two updates would
// claim more than the master itself has.
func (p *place) upToCopies() {
	if p.vague || p.seen == 0 {
		p.mark(p.master, p.position)
	} else {
		p.mark(p.master, min(p.seen, p.position))
	}
	p.vague = false
}

// begun reports whether a copy has changed the database. A copy that is only noted has not. Where
// it is noted because an operator or a cluster has ordered it (amendsCopies), everything is still
// here; otherwise it was noted because something is not.
func (p part) begun() bool { return p.copied || p.at > 0 || p.key != nil }

// expectNothing forgets which update and which instant the master's log must have.
func (p *place) expectNothing() { p.seen, p.copied = 0, 0 }

// mark notes that an update of a log has come here.
func (p *place) mark(log uint64, at ulog.Stamp) {
	if p.marks == nil {
		p.marks = map[uint64]ulog.Stamp{}
	}
	if _, known := p.marks[log]; !known && len(p.marks) >= maxMarks {
		oldest := log
		for other, stamp := range p.marks {
			if oldest == log || stamp < p.marks[oldest] {
				oldest = other
			}
		}
		delete(p.marks, oldest)
	}
	p.marks[log] = max(p.marks[log], at)
}

// meet combines p with the place that another database remembers. A mark is kept only if both have
// it, with the smaller stamp: a greater one would drop updates that one of the databases lacks. The
// master is kept only if both have the same. Of the stamps that the master's log must have (seen,
// copied) the newer ones are kept, because one of the databases has received that much.
func (p *place) meet(other *place) {
	p.amends = max(p.amends, other.amends)
	switch {
	case p.master != other.master:
		p.master, p.seen, p.copied, p.sidKnown = 0, 0, 0, false
	case p.seen < other.seen:
		p.seen, p.seenBy = other.seen, other.seenBy
	}
	if p.master == other.master {
		p.copied = max(p.copied, other.copied)
	}
	maps.DeleteFunc(p.marks, func(log uint64, _ ulog.Stamp) bool { _, both := other.marks[log]; return !both })
	for log := range p.marks {
		p.marks[log] = min(p.marks[log], other.marks[log])
	}
}
