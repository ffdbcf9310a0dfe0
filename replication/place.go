package replication

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"gotycoon/db"
	"gotycoon/ulog"
)

// place is where a follower is: what it remembers with the data, see db.(*DB).Replicate. It is of one master's log.
//
// The position is a stamp of the master up to which every database has everything, except that a database may be ahead of it, or still be
// copied: those have parts.
type place struct {
	master   uint64        // ulog.LogKey of the master's log; 0: unknown
	position ulog.Stamp    // in that log
	rts      [2]ulog.Stamp // what the RTS file says, one or the other
	marks    map[uint64]ulog.Stamp
	parts    []part
	dbs      uint16 // databases that were there, and so have what the position says
	services bool   // and whether the services' one was

	seen     ulog.Stamp // newest update received from the master's log, which must still be there; 0: not known. See parted.go
	seenBy   uint16     // server ID of who has made that update
	copied   ulog.Stamp // newest instant of a copy from the master, whose log must reach as far; 0: not known
	sid      uint16     // the master's server ID
	sidKnown bool
	amends   amends
}

// marks are by log the newest stamp of an update from there that has been here, on whatever way. It was not always worth being stored.

// part is about one database.
type part struct {
	db     uint16
	copied bool       // everything up to at is there
	at     ulog.Stamp // otherwise: when what is there of the copy was begun; 0: nothing is there
	key    []byte     // and the key that it has reached, where it can be gone on with
}

const (
	placeVersion = 2
	placeHead    = 1 + 4*8 + 2       // up to the marks
	placeTail    = 2 + 1             // behind the parts
	placeMaster  = 1 + 1 + 2 + 8 + 2 // behind that; older versions of this program have not written it, and leave it alone
	maxMarks     = 256               // servers that are remembered; the longest silent one is forgotten for another
)

var errPlace = errors.New("what is remembered of the master is of another version of this program")

// encode returns the place in bytes:
//
//	version 1 | master 8 | position 8 | rts 8 | rts 8 | marks 2 | (log 8 | stamp 8) * | parts 2 | (db 2 | copied 1 | at 8 | ksiz 4 | key) * |
//	dbs 2 | services 1 | amends 1 | sid known 1 | sid 2 | seen 8 | made by 2 | newest copy 8
func (p *place) encode() []byte {
	b := make([]byte, 0, placeHead+16*len(p.marks)+2)
	b = append(b, placeVersion)
	b = binary.BigEndian.AppendUint64(b, p.master)
	for _, at := range []ulog.Stamp{p.position, p.rts[0], p.rts[1]} {
		b = binary.BigEndian.AppendUint64(b, uint64(at))
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(p.marks)))
	for _, log := range slices.Sorted(maps.Keys(p.marks)) {
		b = binary.BigEndian.AppendUint64(b, log)
		b = binary.BigEndian.AppendUint64(b, uint64(p.marks[log]))
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(p.parts)))
	for _, part := range p.parts {
		b = binary.BigEndian.AppendUint16(b, part.db)
		b = append(b, flag(part.copied))
		b = binary.BigEndian.AppendUint64(b, uint64(part.at))
		b = binary.BigEndian.AppendUint32(b, uint32(len(part.key)))
		b = append(b, part.key...)
	}
	b = binary.BigEndian.AppendUint16(b, p.dbs)
	b = append(b, flag(p.services), byte(p.amends), flag(p.sidKnown))
	b = binary.BigEndian.AppendUint16(b, p.sid)
	b = binary.BigEndian.AppendUint64(b, uint64(p.seen))
	b = binary.BigEndian.AppendUint16(b, p.seenBy)
	return binary.BigEndian.AppendUint64(b, uint64(p.copied))
}

func flag(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// decodePlace is the reverse of encode.
func decodePlace(b []byte) (p place, err error) {
	if len(b) < placeHead || b[0] != placeVersion {
		return p, errPlace
	}
	b = b[1:]
	number := func() (n uint64) { n, b = binary.BigEndian.Uint64(b), b[8:]; return n }
	p.master, p.position = number(), ulog.Stamp(number())
	p.rts = [2]ulog.Stamp{ulog.Stamp(number()), ulog.Stamp(number())}
	n := int(binary.BigEndian.Uint16(b))
	if b = b[2:]; len(b) < 16*n+2 {
		return p, errPlace
	}
	p.marks = make(map[uint64]ulog.Stamp, n)
	for range n {
		log := number()
		p.marks[log] = ulog.Stamp(number())
	}
	n = int(binary.BigEndian.Uint16(b))
	b = b[2:]
	for range n {
		const head = 2 + 1 + 8 + 4
		if len(b) < head {
			return p, errPlace
		}
		part := part{db: binary.BigEndian.Uint16(b), copied: b[2] != 0, at: ulog.Stamp(binary.BigEndian.Uint64(b[3:]))}
		size := uint64(binary.BigEndian.Uint32(b[11:]))
		if b = b[head:]; uint64(len(b)) < size {
			return p, errPlace
		}
		if size > 0 {
			part.key = slices.Clone(b[:size])
		}
		b = b[size:]
		p.parts = append(p.parts, part)
	}
	if len(b) < placeTail {
		return p, errPlace
	}
	p.dbs, p.services = binary.BigEndian.Uint16(b), b[2] != 0
	if b = b[placeTail:]; len(b) >= placeMaster {
		p.amends, p.sidKnown, p.sid = amends(b[0]), b[1] != 0, binary.BigEndian.Uint16(b[2:])
		p.seen, p.seenBy = ulog.Stamp(binary.BigEndian.Uint64(b[4:])), binary.BigEndian.Uint16(b[12:])
		if b = b[placeMaster:]; len(b) >= 8 { // later versions only
			p.copied = ulog.Stamp(binary.BigEndian.Uint64(b))
		}
	}
	return p, nil
}

// covers tells whether a database was there.
func (p *place) covers(i uint16) bool {
	if i == db.ServicesIndex {
		return p.services
	}
	return i < p.dbs
}

// has returns the stamp up to which a database has everything. ok is false for one that is still to be copied.
func (p *place) has(db uint16) (at ulog.Stamp, ok bool) {
	for _, part := range p.parts {
		if part.db == db {
			return max(part.at, p.position), part.copied
		}
	}
	return p.position, true
}

// needs returns the stamp from which on the master's log is needed by some databases.
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

// part returns the part about a database, nil where there is none.
func (p *place) part(db uint16) *part {
	for i := range p.parts {
		if p.parts[i].db == db {
			return &p.parts[i]
		}
	}
	return nil
}

// incomplete returns the first database that is still to be copied.
func (p *place) incomplete() *part {
	for i := range p.parts {
		if !p.parts[i].copied {
			return &p.parts[i]
		}
	}
	return nil
}

// copyAll makes databases ones that are to be copied. What has been copied of one with the position out of reach is worth nothing.
func (p *place) copyAll(dbs []uint16) {
	p.parts = nil
	for _, i := range dbs {
		p.parts = append(p.parts, part{db: i})
	}
}

// copyAgain makes one database one that is to be copied from its beginning.
func (p *place) copyAgain(db uint16) {
	p.parts = slices.DeleteFunc(p.parts, func(part part) bool { return part.db == db })
	p.parts = append(p.parts, part{db: db})
}

// startAnew forgets what is noted of databases in the log of another master: a copy that was begun is none of this one's.
func (p *place) startAnew() {
	p.parts = slices.DeleteFunc(p.parts, func(part part) bool { return part.copied })
	for i := range p.parts {
		p.parts[i].at, p.parts[i].key = 0, nil
	}
}

// without forgets databases that the master has not: there is nothing to be copied.
func (p *place) without(has func(db uint16) bool) {
	p.parts = slices.DeleteFunc(p.parts, func(part part) bool { return !has(part.db) })
}

// advance moves the position on. Parts that it has reached are parts no more.
func (p *place) advance(to ulog.Stamp) {
	p.position = max(p.position, to)
	if len(p.parts) > 0 {
		p.parts = slices.DeleteFunc(p.parts, func(part part) bool { return part.copied && part.at <= p.position })
	}
}

// settle makes the position what all databases have, after some of them have been copied. all tells that all of them have been.
func (p *place) settle(all bool) {
	if all && len(p.parts) > 0 {
		p.position = p.parts[0].at
		for _, part := range p.parts {
			p.position = min(p.position, part.at)
		}
	}
	p.advance(0)
}

// copying notes what the master's log must have from now on: the instant of a copy, and the newest update before it. Updates that were
// received are no longer asked for once more when there is a newer one in a copy.
func (p *place) copying(instant, newest ulog.Stamp, by uint16) {
	p.copied = max(p.copied, instant)
	if newest > p.seen {
		p.seen, p.seenBy = newest, by
	}
}

// expectNothing forgets what the master's log must have.
func (p *place) expectNothing() { p.seen, p.copied = 0, 0 }

// mark notes an update from a log.
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

// meet makes p what two databases have both.
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
