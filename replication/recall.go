package replication

import (
	"fmt"
	"slices"

	"gotycoon/db"
	"gotycoon/ulog"
)

// recall finds out where the follower is, from what the databases remember and what the RTS file says.
//
// As long as the file says what this program has written there, what is remembered with the data counts: it is exact whatever a crash has
// taken. When it says anything else, somebody has set a position there, and gets it, as from the original.
func (f *Follower) recall(said ulog.Stamp) place {
	states := make([]*place, f.opts.Catalog.Len())
	known, ours := false, false
	for i := range states {
		state := f.opts.Catalog.DB(i).Remembered()
		if state == nil {
			continue
		}
		p, err := decodePlace(state)
		if err != nil {
			f.opts.Logger.Warn(fmt.Sprintf("%s: %v", f.opts.Catalog.DB(i).Path(), err))
			continue
		}
		states[i], known = &p, true
		ours = ours || p.rts[0] == said || p.rts[1] == said
	}
	if !ours {
		if known {
			f.opts.Logger.Info(fmt.Sprintf("the RTS file has been changed: replication goes on from ts=%d", said))
		}
		states = make([]*place, len(states))
	}
	return f.combine(states, said)
}

// combine makes one place of those that the databases have. A database without one is where the RTS file says. One in memory that has come
// up empty has lost what it had, and one that is new beside others never had it: it needs a copy, if there will be a master that gives one.
func (f *Follower) combine(states []*place, said ulog.Stamp) place {
	known := slices.ContainsFunc(states, func(s *place) bool { return s != nil })
	p := place{rts: [2]ulog.Stamp{said, said}, position: said}
	first := true
	for i, s := range states {
		at, complete := said, true
		if s != nil {
			at, complete = s.has(uint16(i))
		}
		d := f.opts.Catalog.DB(i)
		switch {
		case at > 0 && (lost(d) || s == nil && known && empty(d)):
			p.parts = append(p.parts, part{db: uint16(i)})
			continue
		case !complete:
			p.parts = append(p.parts, *s.part(uint16(i)))
		case p.position > at || first:
			p.position = at
			first = false
		}
	}
	p.parts = append(p.parts, p.ahead(states)...)
	p.takeMarks(states)
	return p
}

// lost tells whether a database in memory has come up with nothing.
func lost(d *db.DB) bool { return d.Volatile() && empty(d) }

func empty(d *db.DB) bool {
	n, err := d.Count()
	return err == nil && n == 0
}

// ahead returns parts for the databases that have more than the position says.
func (p *place) ahead(states []*place) (parts []part) {
	for i, s := range states {
		if s == nil || p.part(uint16(i)) != nil {
			continue
		}
		if at, complete := s.has(uint16(i)); complete && at > p.position {
			parts = append(parts, part{db: uint16(i), copied: true, at: at})
		}
	}
	return parts
}

// takeMarks takes over the marks that all have.
func (p *place) takeMarks(states []*place) {
	first := true
	for _, s := range states {
		switch {
		case s == nil:
		case first:
			p.master, p.marks = s.master, s.marks
			first = false
		default:
			p.meet(s)
		}
	}
}
