package ulog

import (
	"encoding/binary"
	"slices"
	"sync"
)

const (
	tailBytes = 4 << 20       // of the newest groups that are kept in memory for readers
	groupKept = referSize - 1 // a larger group is left to be read from the file
)

// A Group is records of the log that were written together. All readers at the end of the log share
// it. Nobody changes it.
type Group struct {
	Last  Stamp // of its newest update
	Count int   // updates

	first   Stamp
	raw     []byte // records, without the commit record
	seg     uint64
	from    int64 // in the segment
	to      int64 // behind its commit record
	records uint64

	once sync.Once
	memo any
}

// Size returns the bytes of the group's records, position records included.
func (g *Group) Size() int { return len(g.raw) }

// Memo returns what f makes of the group. f is called once: everybody who shares the group shares
// the result.
func (g *Group) Memo(f func(*Group) any) any {
	g.once.Do(func() { g.memo = f(g) })
	return g.memo
}

// Each calls f for the updates of the group.
func (g *Group) Each(f func(Entry)) {
	var origins []Origin
	eachRecord(g.raw, func(at Stamp, msg []byte) {
		if isPosition(msg) {
			_, origins, _ = parsePosition(origins[:0], msg) // made by this process
			return
		}
		e := Entry{Stamp: at, Message: msg}
		if len(origins) > 0 {
			e.Origin, origins = origins[0], origins[1:]
		}
		f(e)
	})
}

// eachRecord calls f for each record of bytes that are known to be good.
func eachRecord(raw []byte, f func(at Stamp, msg []byte)) {
	for len(raw) > 0 {
		n := int(binary.BigEndian.Uint32(raw[9:]))
		f(Stamp(binary.BigEndian.Uint64(raw[1:])), raw[RecordHead:RecordHead+n:RecordHead+n])
		raw = raw[frameSize+n:]
	}
}

// newest is the newest groups of a log, the oldest first. It is guarded by Log.mu.
type newest struct {
	readers int // open readers of the log; without readers nothing is kept
	groups  []*Group
	bytes   int

	// For readers that want only the updates of one server, or of all others: for each server the
	// number (see tail.records) of its newest update, counted since there are readers.
	last  map[uint16]uint64
	since uint64
}

// copyFor returns a copy of a group's records for readers, nil if they read them from the file: the
// group is too large, or there were no readers yet.
func (g *group) copyFor(records int) []byte {
	if !g.shared || records > groupKept || len(g.large) > 0 {
		return nil
	}
	return slices.Clone(g.buf[:records])
}

// keep keeps a group that has been written: records is the group without its commit record, and
// ends, with it, at the position at; copied is what copyFor made of it. It is called while there
// are readers.
func (n *newest) keep(g *group, records, copied []byte, at tail) {
	n.count(g, len(records), at.records)
	if copied == nil {
		n.drop()
		return
	}
	kept := &Group{Last: g.last, Count: int(g.count - g.notes), first: g.first, raw: copied, seg: at.seg, to: at.off, records: at.records}
	kept.from = at.off - int64(len(records)+commitSize)
	n.groups = append(n.groups, kept)
	n.bytes += len(records)
	for n.bytes > tailBytes {
		n.bytes -= len(n.groups[0].raw)
		n.groups[0] = nil
		n.groups = n.groups[1:]
	}
}

func (n *newest) drop() { n.groups, n.bytes = nil, 0 }

// count notes the servers whose updates are in the records of a group, whose last update has the
// number last. A group is small enough to be looked at as a whole.
func (n *newest) count(g *group, records int, last uint64) {
	before := -1
	g.each(records, func(msg []byte) {
		if len(msg) < 2 || isPosition(msg) {
			return
		}
		if sid := binary.BigEndian.Uint16(msg); int(sid) != before {
			n.last[sid], before = last, int(sid)
		}
	})
}

// wanted reports whether there may be updates behind number seen that are of a server, or, with
// others, of any other server.
func (n *newest) wanted(seen uint64, sid uint16, others bool) bool {
	if seen < n.since {
		return true
	}
	if !others {
		return n.last[sid] > seen
	}
	for other, last := range n.last {
		if other != sid && last > seen {
			return true
		}
	}
	return false
}
