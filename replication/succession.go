package replication

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/ulog"
)

// Another server in the place of the master.
//
// Problem. After a failover a follower has a position in the log of the former master, and goes on
// in the log of the new one. That is right if the new master has everything that this server has.
// A server that never followed the former master, or that was behind this one, or that came back
// with an empty disk, has not: the two servers would differ for good, and nobody would be told.
//
// Rule. The first message of a master says what it has received as a follower (frame.Past): which
// log it followed last, up to where, and its marks. It succeeds the former master if
//
//   - it has followed the same log at least as far as the newest update that came here from it, or
//   - it has each mark of this server, with the same stamp or a newer one. Its own log counts as
//     far as it goes. This is how the master of the former master is known, and a server that was
//     further round a ring.
//
//	this server   followed A, newest update 120, marks A 120, Z 90
//	B             followed A, position 130                              succeeds
//	C             followed B, marks A 125, Z 90                         succeeds
//	A's master Z  followed nobody; its own log goes to 140              lacks A 120
//	D             followed A, position 110                              lacks A 120
//	E             followed nobody                                       lacks everything
//
// A server without any data or position needs no proof. A server that lacks something may be about
// to receive it, as in a ring that is being closed; so it is given FollowerOptions.Silence before
// the follower parts from it as from a master that has lost updates (parted.go). A server that
// knows nothing of the former log is parted from at once. Whether it has the server ID of the
// former master makes no difference: a server that was made anew receives what others made like any
// other.
//
// A full copy brings the updates of all logs that its master had. So it brings the master's marks
// as well, and they take the place of the marks of what it has replaced (inherit).
//
// Rejected: to compare server IDs. Two servers with different IDs say nothing about each other, and
// a server with the ID of the former master may have been made anew from a copy of a follower.

// PastOf returns a function that says what a server has received. A server without a Follower says
// what its databases remember of the time when it had one.
func PastOf(f *Follower, c *db.Catalog) func() *frame.Past {
	if f != nil {
		return f.Past
	}
	return func() *frame.Past { return received(c) }
}

func received(c *db.Catalog) *frame.Past {
	all, found := place{}, false
	for _, d := range c.All() {
		state := d.Info().Remembered
		if state == nil {
			continue
		}
		p, err := decodePlace(state)
		if err != nil || p.lacksData() {
			return new(frame.Past)
		}
		// The databases share one log, so those with an older position have had no update since.
		all.position = max(all.position, p.position)
		all.takeMarks(&p)
		found = true
	}
	if !found {
		return new(frame.Past)
	}
	return all.past()
}

// Past returns what this server has received.
func (f *Follower) Past() *frame.Past {
	p, err := decodePlace(*f.known.Load())
	if err != nil || p.lacksData() {
		return new(frame.Past) // with a part of the data nobody succeeds anybody
	}
	return p.past()
}

// lacksData reports whether a database is still to be copied. That of the services does not count:
// the services find out themselves what it lacks.
func (p *place) lacksData() bool {
	return slices.ContainsFunc(p.parts, func(part part) bool { return !part.copied && part.db != db.ServicesIndex })
}

func (p *place) past() *frame.Past {
	past := &frame.Past{Master: p.master, Position: uint64(p.position)}
	for log, at := range p.marks {
		past.Marks = append(past.Marks, frame.Mark{Log: log, Stamp: uint64(at)})
	}
	return past
}

// lack says what a new master lacks.
type lack struct {
	why   string
	knows bool // it knows the log, so it may still receive what it lacks
}

// lacks returns what the new master lacks, nil for nothing. The Hello has a Past.
func (p *pull) lacks() *lack {
	place, past := &p.f.place, p.hello.Past
	newest := place.seen
	if newest == 0 {
		newest = max(place.copied, place.marks[place.master])
	}
	sibling := past.Master == place.master
	if sibling && past.Position >= uint64(newest) {
		return nil
	}
	has := map[uint64]uint64{p.key: p.hello.Last}
	for _, m := range past.Marks {
		has[m.Log] = max(has[m.Log], m.Stamp)
	}
	var found *lack
	proved := false
	for log, at := range place.marks {
		stamp, knows := has[log]
		switch of, copied := p.copyOf(log); {
		case copied && of != p.key: // the marks that came with the copy are compared
		case copied, stamp >= uint64(at):
			proved = true
		case found == nil || !knows:
			found = &lack{fmt.Sprintf("server %d has the updates of log %016x up to ts=%d, this server up to ts=%d", p.hello.SID, log, stamp, at), knows}
		}
	}
	switch {
	case found == nil && proved:
		return nil
	case sibling:
		return &lack{fmt.Sprintf("server %d has followed it up to ts=%d, this server up to ts=%d", p.hello.SID, past.Position, newest), true}
	case found == nil:
		return &lack{fmt.Sprintf("server %d has not followed it", p.hello.SID), false}
	}
	return found
}

// newest returns a stamp that every update of the new master which this server lacks is behind, if
// no update of the new master has come here, see meetLog; 0: none is known.
func (p *pull) newest() (at ulog.Stamp) {
	place := &p.f.place
	if past := p.hello.Past; past == nil || past.Master == place.master {
		return place.seen
	}
	for _, stamp := range place.marks {
		at = max(at, stamp)
	}
	return at
}

// copyOf reports whether a mark is about updates of a copy (copyLog), and of which log's master, as
// far as one can tell from the logs that are known here.
func (p *pull) copyOf(mark uint64) (log uint64, copied bool) {
	known := append(slices.Collect(maps.Keys(p.f.place.marks)), p.key, p.f.place.master, p.f.ownLog)
	for _, from := range known {
		for _, by := range known {
			if copyKey(from, by) == mark {
				return from, true
			}
		}
	}
	return 0, false
}

// meetSuccessor looks at a master whose log is another one than before.
func (p *pull) meetSuccessor() error {
	f := p.f
	place := &f.place
	if place.master == 0 || place.master == p.key || place.amends != amendsNone || f.elect.Term != 0 {
		return nil
	}
	other := ""
	if place.sidKnown && place.sid == p.hello.SID {
		other = fmt.Sprintf("server %d has another update log than the one that was followed up to ts=%d", p.hello.SID, place.position)
	}
	if p.hello.Past == nil { // an earlier version; meetLog warns
		if other != "" {
			return p.part(errParted, other)
		}
		return nil
	}
	if place.position == 0 {
		return nil // everything comes
	}
	if p.blank() {
		f.beginAt(0) // what the former master had not, the new one may have from before
		return errAgain
	}
	l := p.lacks()
	switch {
	case l == nil:
		f.lacking = time.Time{}
		f.opts.Logger.Info(fmt.Sprintf("another master: server %d has all that is here from the former one", p.hello.SID))
		return nil
	case l.knows && (f.lacking.IsZero() || time.Since(f.lacking) < f.opts.Silence):
		if f.lacking.IsZero() {
			f.lacking = time.Now()
		}
		return fmt.Errorf("%w: %s", errLagging, l.why)
	case other != "":
		return p.part(errParted, other)
	}
	return p.part(errStranger, l.why)
}

// blank reports whether this server has nothing that a master could lack: the databases are to be
// copied anyway, or are empty, and nothing has come that could have emptied them. The services'
// database does not count, because it is copied from each new master.
func (p *pull) blank() bool {
	place := &p.f.place
	copying, records := true, false
	for _, i := range p.f.shared(p.hello) {
		part := place.part(i)
		copying = copying && part != nil && !part.copied
		records = records || i != db.ServicesIndex && !empty(p.f.opts.Catalog.DB(int(i)))
	}
	for log := range place.marks {
		_, copied := p.copyOf(log)
		records = records || !copied
	}
	return copying || !records
}

// inherit takes over the marks of a master after copies of all databases, all of which were begun
// after the Hello. kept says that records of this server which were newer have stayed. Of the marks
// before only that of the copies themselves stays: stamps of further copies go on from there.
func (p *place) inherit(h *frame.Hello, kept bool, copies uint64) {
	if h.Past == nil {
		return
	}
	if at, ok := p.marks[copies]; !kept {
		p.marks = nil
		if ok {
			p.mark(copies, at)
		}
	}
	for _, m := range h.Past.Marks {
		p.mark(m.Log, ulog.Stamp(m.Stamp))
	}
	p.mark(ulog.LogKey(h.Log), ulog.Stamp(h.Last))
}
