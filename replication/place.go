package replication

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"gotycoon/ulog"
)

// place says how far a follower is in one master's log, and what it needs to go on from there. It
// is remembered with the data, see "Positions of a follower" in doc.go.
//
// Every database has every update up to the position, with two exceptions, which are parts: a
// database that has more, and one that is still to be copied.
type place struct {
	master   uint64        // ulog.LogKey of the master's log; 0: unknown
	position ulog.Stamp    // in the master's log
	rts      [2]ulog.Stamp // the RTS file says one of these
	parts    []part
	dbs      uint16 // the position is about databases with smaller numbers; others did not exist
	services bool   // the services' database has what the position says

	// marks holds, for each log, the newest stamp of an update from that log that has come here, on
	// whatever way, whether it was stored or was older than what is here.
	marks map[uint64]ulog.Stamp

	// The master's log must still have the update seen, and must reach the instant copied.
	// Otherwise the master has lost updates, see parted.go.
	seen     ulog.Stamp // newest update received from the master's log; 0: not known
	seenBy   uint16     // ID of the server that made the update seen
	copied   ulog.Stamp // newest instant of a copy from the master; 0: not known
	sid      uint16     // the master's server ID
	sidKnown bool
	amends   amends
	base     Base

	vague bool // seen may be older than what copies under way bring; not encoded
}

// Base is the latest copy. What it brought is not in this server's log as single updates: those
// begin behind Own, and follow the stamp At of the log Log. The zero value means that there was no
// copy.
type Base struct {
	Log uint64
	At  ulog.Stamp
	Own ulog.Stamp
}

// part is the exception that one database makes from the position of the place.
type part struct {
	db     uint16
	copied bool // the database has every update up to at; false: it is still to be copied
	// at is the instant of the copy. While the database is still to be copied, 0 means that no copy
	// has begun.
	at  ulog.Stamp
	key []byte // the last key that the copy has brought, if the copy can go on behind it
}

// amends says how a follower is made equal to a master that has lost updates. The values of the
// constants are stored in encoded places.
type amends byte

const (
	amendsNone     amends = iota
	amendsVersions        // by copies with versions: what is newer here stays
	amendsCopies          // by any copies: an operator has decided for the master's data
)

const (
	placeVersion = 2
	placeHead    = 1 + 4*8 + 2       // the fields in front of the marks
	placeTail    = 2 + 1             // the fields behind the parts
	placeMaster  = 1 + 1 + 2 + 8 + 2 // more fields, unknown to older versions of this program
	placeBase    = 8 + 8 + 8
)

var errPlace = errors.New("what is remembered of the master is of another version of this program")

// encode returns the place in bytes. Numbers are big-endian. The number behind a field's name is
// its size in bytes; the field version always holds placeVersion:
//
//	version 1 | master 8 | position 8 | rts 8 | rts 8
//	marks 2   | (log 8 | stamp 8) for each mark
//	parts 2   | (db 2 | copied 1 | at 8 | key size 4 | key) for each part
//	dbs 2     | services 1
//	amends 1  | sidKnown 1 | sid 2 | seen 8 | seenBy 2
//	copied 8
//	base: log 8 | at 8 | own 8
//
// Older versions of this program end a place behind services, behind seenBy, or behind copied.
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
	b = binary.BigEndian.AppendUint64(b, uint64(p.copied))
	b = binary.BigEndian.AppendUint64(b, p.base.Log)
	b = binary.BigEndian.AppendUint64(b, uint64(p.base.At))
	return binary.BigEndian.AppendUint64(b, uint64(p.base.Own))
}

func flag(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// decodePlace reads what encode returns.
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
		if b = b[placeMaster:]; len(b) >= 8 {
			p.copied = ulog.Stamp(binary.BigEndian.Uint64(b))
			if b = b[8:]; len(b) >= placeBase {
				p.base = Base{binary.BigEndian.Uint64(b), ulog.Stamp(binary.BigEndian.Uint64(b[8:])), ulog.Stamp(binary.BigEndian.Uint64(b[16:]))}
			}
		}
	}
	return p, nil
}
