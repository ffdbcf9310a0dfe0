package ulog

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"gotycoon/internal/pieces"
	"gotycoon/internal/vfs"
)

// A tail is a position between two groups.
type tail struct {
	seg  uint64 // number of the segment
	off  int64  // in the segment
	last Stamp  // newest stamp in front of the position

	records uint64 // updates written since Open
}

// A group is what one write puts into the log.
type group struct {
	buf   []byte
	large []largeValue // that the records refer to
	count uint32       // records
	notes uint32       // position records among them
	first Stamp
	last  Stamp
	note  note // of the newest position record

	shared bool // there were readers when the group was taken
}

// referSize is the size from which on a value that stays as it is (Update.Stays) is not copied into
// the pending records: they refer to it, and it is written from where it is. A group with such a
// value is larger than what readers share in memory (groupKept).
const referSize = 1<<20 + 1

// A largeValue is a value that pending records refer to.
type largeValue struct {
	at    int // where the value belongs in the records
	value []byte
	ahead *aheadFile // the value on the disk already; nil: it is not
}

// An aheadFile is the file with a value that was written before its update's turn (ahead.go).
type aheadFile struct {
	f    vfs.File
	path string
	from int64 // where the value begins in the file
	size int   // of the value
	crc  uint32

	used bool // appended or discarded; guarded by Log.mu
}

// refers reports whether the pending record of an update refers to its value.
func refers(u *Update) bool {
	return u.Stays && u.Op == OpSet && (len(u.Value) >= referSize || u.Ahead != nil)
}

// referred returns the bytes of the values that the records of updates refer to.
func referred(ups []Update) (size int) {
	for i := range ups {
		if refers(&ups[i]) {
			size += len(ups[i].Value)
		}
	}
	return size
}

// pending is the records that were appended and that no group has taken yet. It is guarded by
// Log.mu.
type pending struct {
	buf     []byte       // encoded records
	large   []largeValue // that the records refer to
	referTo int          // bytes of large values, those in waiting included
	waiting []group      // groups to be written before buf, see cut
	count   uint32       // records in buf
	notes   uint32       // position records among them
	first   Stamp        // of the first record in buf
	spare   []byte       // empty buffer to become buf
}

// add appends the record of an update, or all of the record but a large value.
func (p *pending) add(at Stamp, u *Update) {
	p.count++
	if !refers(u) {
		p.buf = appendRecord(p.buf, at, u)
		return
	}
	p.buf = appendFrameHead(p.buf, at, messageSize(u))
	p.buf = binary.BigEndian.AppendUint16(p.buf, u.SID)
	p.buf = binary.BigEndian.AppendUint16(p.buf, u.DBID)
	p.buf = appendSetHead(append(p.buf, byte(u.Op)), u)
	v := largeValue{at: len(p.buf), value: u.Value}
	if u.Ahead != nil {
		v.ahead = u.Ahead.File.(*aheadFile)
		v.ahead.used = true
	}
	p.large = append(p.large, v)
	p.buf = append(p.buf, endMark)
}

// addNote appends a position record.
func (p *pending) addNote(at Stamp, msg []byte) {
	p.buf = appendFrameHead(p.buf, at, len(msg))
	p.buf = append(append(p.buf, msg...), endMark)
	p.count++
	p.notes++
}

// cut makes the records in buf a group that waits to be written. Append cuts in front of a large
// value and behind it, so that the value has a group of its own: updates before the value are
// acknowledged before it is written, and do not wait for the disk to take it. Updates behind the
// value have to wait for it, since the log is written in one order.
func (p *pending) cut(last Stamp, n note) {
	if p.count > 0 {
		p.waiting = append(p.waiting, p.group(last, n))
	}
}

// group makes the records in buf a group, and buf empty.
func (p *pending) group(last Stamp, n note) group {
	g := group{buf: p.buf, large: p.large, count: p.count, notes: p.notes, first: p.first, last: last, note: n}
	p.buf, p.spare, p.count, p.notes = p.spare, nil, 0, 0
	p.large = nil
	return g
}

// take returns the next group to be written.
func (p *pending) take(last Stamp, n note) (g group) {
	if len(p.waiting) > 0 {
		g = p.waiting[0]
		p.waiting = slices.Delete(p.waiting, 0, 1)
	} else {
		g = p.group(last, n)
	}
	p.referTo -= g.referred()
	return g
}

// referred returns the bytes of the group's large values.
func (g *group) referred() (size int) {
	for _, v := range g.large {
		size += len(v.value)
	}
	return size
}

// size is what the group takes in the segment.
func (g *group) size() int64 { return int64(len(g.buf) + g.referred()) }

// seal appends the commit record.
func (g *group) seal() {
	crc, from := uint32(0), 0
	sum := func(p []byte) error {
		crc = crc32.Update(crc, castagnoli, p)
		return nil
	}
	for _, v := range g.large {
		_ = sum(g.buf[from:v.at]) // fails never
		if from = v.at; v.ahead != nil {
			crc = joinCRC(crc, v.ahead.crc, len(v.value))
		} else {
			_ = pieces.Each(v.value, sum)
		}
	}
	_ = pieces.Each(g.buf[from:], sum)
	g.buf = appendCommitOf(g.buf, crc, g.last, g.count)
}

// each calls f for the message of each of the group's records, without large values. The records
// are the first n bytes of the buffer.
func (g *group) each(n int, f func(msg []byte)) {
	large := g.large
	for at := 0; at < n; {
		from := at + RecordHead
		to := from + int(binary.BigEndian.Uint32(g.buf[at+9:]))
		if len(large) > 0 && large[0].at == to-len(large[0].value) {
			to, large = large[0].at, large[1:]
		}
		f(g.buf[from:to:to])
		at = to + 1
	}
}

// abandon closes the files of a group that will not be written because the log has ended. Open
// removes them.
func (g *group) abandon() {
	for _, v := range g.large {
		if v.ahead != nil {
			_ = v.ahead.f.Close() // why the log has ended says more
		}
	}
}

// joinCRC returns the checksum of two runs of bytes, where a is the checksum of the first run, and
// b of the second, which is n bytes long.
//
// A checksum is the remainder of a division of polynomials whose coefficients are bits. Appending n
// bytes multiplies the first run by x to the power of 8n and then adds the second run. The
// inversions at both ends of a checksum cancel each other out.
func joinCRC(a, b uint32, n int) uint32 {
	power := uint32(1) << (31 - 8) // x to the power of 8, then of 16, 32, …
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			a = multiplyCRC(a, power)
		}
		power = multiplyCRC(power, power)
	}
	return a ^ b
}

// multiplyCRC multiplies polynomials modulo the polynomial of CRC-32C. The highest bit is the
// coefficient of 1, the lowest that of x to the power of 31.
func multiplyCRC(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a>>31 == 1 {
			product ^= b
		}
		b = b>>1 ^ b&1*crc32.Castagnoli // b times x
	}
	return product
}
