package ulog

import (
	"encoding/binary"
	"slices"
	"sort"
	"sync"
)

const (
	tailBytes = 4 << 20 // of the newest groups that are kept in memory for readers
	groupKept = 1 << 20 // a larger group is left to be read from the file
)

// Group is records of the log that were written together, as they are shared by all readers at the end of the log. Nobody changes it.
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

// Memo returns what f makes of the group. f is called once: all who share the group share the result.
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
		f(Stamp(binary.BigEndian.Uint64(raw[1:])), raw[frameHead:frameHead+n:frameHead+n])
		raw = raw[frameSize+n:]
	}
}

// newest is the newest groups of a log, the oldest first. It is guarded by Log.mu.
type newest struct {
	readers int // open readers of the log; without any nothing is kept
	groups  []*Group
	bytes   int

	// For readers that want the updates of one server only, or of all others: the number (see tail.records) of the newest update of each
	// server, since somebody reads.
	last  map[uint16]uint64
	since uint64
}

// keepLocked keeps a group that has been written, its records being those of buf from offset from on. The caller holds mu.
func (l *Log) keepLocked(g *group, records []byte, at tail) {
	n := &l.newest
	if n.readers == 0 {
		return
	}
	n.count(g, len(records), at.records)
	if len(records) > groupKept || len(g.large) > 0 {
		n.drop()
		return
	}
	kept := &Group{Last: g.last, Count: int(g.count - g.notes), first: g.first, raw: slices.Clone(records), seg: at.seg, to: at.off, records: at.records}
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

// count notes the servers whose updates are in the records of a group, of which the last is number last: a group is small enough to be looked at as a whole.
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

// wanted tells whether there may be updates behind number seen that are of a server, or with others are not.
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

// Skip passes over everything that there is in the log, where it holds no update that is of a server, or with others none that is not. It
// returns how many updates those were and the stamp of the last. Where it cannot tell without reading, it passes over nothing.
func (r *Reader) Skip(sid uint16, others bool) (n uint64, last Stamp) {
	if r.log == nil || r.f == nil || r.closed || r.Lost() != nil || !r.counted || !r.betweenGroups() {
		return 0, 0
	}
	r.log.mu.Lock()
	safe := r.log.safe
	may := safe.seg != r.seg || safe.off <= r.pos || r.log.newest.wanted(r.records, sid, others)
	r.log.mu.Unlock()
	if may {
		return 0, 0
	}
	n = safe.records - r.records
	r.goOn(safe.off, safe.last, safe.records)
	return n, safe.last
}

// goOn goes on behind a group.
func (r *Reader) goOn(off int64, last Stamp, records uint64) {
	r.pos, r.scan.off, r.limit = off, off, max(r.limit, off)
	r.scan.last, r.scan.committed, r.scan.closed = max(r.scan.last, last), true, true
	r.headed, r.scan.head.size = true, max(r.scan.head.size, off)
	r.origins = nil
	r.records, r.counted = records, true
}

// countReaders notes that a reader has been opened or closed.
func (l *Log) countReaders(by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := &l.newest
	if n.readers == 0 {
		n.last, n.since = map[uint16]uint64{}, l.written.records
	}
	if n.readers += by; n.readers == 0 {
		n.drop()
	}
}

// groupsAt appends the safe groups that begin at a position to dst.
func (l *Log) groupsAt(dst []*Group, seg uint64, off int64) []*Group {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.newest.groups
	i := sort.Search(len(all), func(i int) bool { return all[i].seg > seg || all[i].seg == seg && all[i].from >= off })
	for ; i < len(all); i++ {
		g := all[i]
		if g.seg != seg || g.from != off || l.safe.seg == seg && g.to > l.safe.off || l.safe.seg < seg {
			break
		}
		dst = append(dst, g)
		off = g.to
	}
	return dst
}

// Tail appends to dst the groups that Next would deliver next, where they are among the newest of the log: readers at its end share them,
// and need not read its files. The reader goes on behind them. Where there are none Next says what there is.
func (r *Reader) Tail(dst []*Group) []*Group {
	if r.log == nil || r.f == nil || r.closed || r.Lost() != nil || !r.betweenGroups() {
		return dst
	}
	have := len(dst)
	dst = r.log.groupsAt(dst, r.seg, r.pos)
	if have == len(dst) {
		return dst
	}
	if dst[have].first <= r.after {
		return dst[:have]
	}
	last := dst[len(dst)-1]
	r.goOn(last.to, last.Last, last.records)
	return dst
}

// betweenGroups tells whether the reader has delivered whole groups. A commit record that is still to be passed over is.
func (r *Reader) betweenGroups() bool {
	if r.pos == r.scan.off-commitSize && r.scan.closed {
		if rec, err := r.scan.record(r.pos, r.pos, r.scan.off); err == nil && isCommit(rec.message()) {
			r.pos = rec.end
		}
	}
	return r.pos == r.scan.off
}

// Delivered returns how many of the log's updates (see Log.Updates) the reader has delivered or passed over. known is false until it has been
// at the end once.
func (r *Reader) Delivered() (n uint64, known bool) { return r.records, r.counted }

// Updates returns how many updates have been appended since Open, and are as safe as the mode promises.
func (l *Log) Updates() uint64 { return l.safeTail().records }
