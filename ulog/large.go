package ulog

import (
	"encoding/binary"
	"hash/crc32"

	"gotycoon/internal/pieces"
)

// referSize is the size from which on a value that stays as it is (Update.Stays) is not copied into the pending records: they refer to it,
// and it is written from where it is. A group with such a value is larger than readers share in memory (groupKept).
const referSize = groupKept + 1

// largeValue is a value that pending records refer to.
type largeValue struct {
	at    int // where it belongs in the records
	value []byte
	ahead *aheadFile // where it is already; nil: nowhere
}

// refers reports whether the pending record of an update refers to its value.
func refers(u *Update) bool {
	return u.Stays && u.Op == OpSet && (len(u.Value) >= referSize || u.Ahead != nil)
}

// appendLocked appends the record of an update to the pending ones, or all of it but a large value. The caller holds mu.
func (l *Log) appendLocked(u *Update) {
	if !refers(u) {
		l.pending = appendRecord(l.pending, l.last, u)
		return
	}
	l.pending = appendFrameHead(l.pending, l.last, messageSize(u))
	l.pending = binary.BigEndian.AppendUint16(l.pending, u.SID)
	l.pending = binary.BigEndian.AppendUint16(l.pending, u.DBID)
	l.pending = appendSetHead(append(l.pending, byte(u.Op)), u)
	v := largeValue{at: len(l.pending), value: u.Value}
	if u.Ahead != nil {
		v.ahead = u.Ahead.File.(*aheadFile)
		v.ahead.used = true
	}
	l.large = append(l.large, v)
	l.pending = append(l.pending, endMark)
}

// cutLocked makes the pending records a group that waits to be written. So an Append with a large value has a group of its own: what came
// before it is acknowledged before the value is written, and waits neither for the value nor for the disk to take it. What comes behind the
// value has to wait for it, since the log is written in one order. The caller holds mu.
func (l *Log) cutLocked() {
	if l.count > 0 {
		l.waiting = append(l.waiting, l.pendingLocked())
	}
}

// referred returns the bytes of the values that records of updates refer to.
func referred(ups []Update) (size int) {
	for i := range ups {
		if refers(&ups[i]) {
			size += len(ups[i].Value)
		}
	}
	return size
}

// referred returns the bytes of the group's large values.
func (g *group) referred() (size int) {
	for _, v := range g.large {
		size += len(v.value)
	}
	return size
}

// parts calls f for the parts of the group's first n bytes, and the large values where they belong.
func (g *group) parts(n int, f func(p []byte) error) error {
	from := 0
	for _, v := range g.large {
		if err := f(g.buf[from:v.at]); err != nil {
			return err
		}
		if err := f(v.value); err != nil {
			return err
		}
		from = v.at
	}
	return f(g.buf[from:n])
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

// writeAt writes the group into the newest segment.
func (l *Log) writeAt(g *group, off int64) error {
	return g.parts(len(g.buf), func(p []byte) error {
		n, err := l.f.WriteAt(p, off)
		off += int64(n)
		return err
	})
}

// each calls f for the message of each of the group's records, which are the first n bytes of its buffer, without large values.
func (g *group) each(n int, f func(msg []byte)) {
	large := g.large
	for at := 0; at < n; {
		from := at + frameHead
		to := from + int(binary.BigEndian.Uint32(g.buf[at+9:]))
		if len(large) > 0 && large[0].at == to-len(large[0].value) {
			to, large = large[0].at, large[1:]
		}
		f(g.buf[from:to:to])
		at = to + 1
	}
}
