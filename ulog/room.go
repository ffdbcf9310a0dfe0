package ulog

import (
	"errors"
	"fmt"
	"math"
	"syscall"
)

// # Room at the end of the newest segment
//
// With SyncEach the disk gets a few kilobytes at a time, and everybody waits for it. An fsync of
// bytes that lengthen a file has to write more than the bytes: the new size, and which blocks the
// file has got. These are writes of their own, one after the other, and a file system with a
// journal commits it for them.
//
// The rule: behind a group that ends where the file ends, the leader writes zeros, up to mostRoom.
// The next groups overwrite zeros; size and blocks are on the disk already. Behind the last record
// of a segment there may therefore be zeros until the segment ends or the log is closed. A record
// never ends with a zero, so it is clear where they begin. Open, readers and tools look for that
// place (withoutRoom) in the newest segment, but never below the size that its header promises:
// zeros there are damage, and so they are in other segments.
//
//	before   … group │ commit │                      an fsync: 0.2 ms, 95 µs of it computing
//	room     … group │ commit │ 0 0 0 0 0 0 0 0 0    0.11 ms, 60 µs
//	next     … group │ commit │ group │ commit │ 0 0
//
// A process that dies leaves the zeros; the next Open cuts them off. A full disk has no room to
// give: what was written of the zeros is cut off, and the segment goes on without.
//
// Without SyncEach the disk is synced once in a second, and room would bring nothing.
//
// Programs that copy files of the log while they are written meet zeros where records will be: a
// slow copy may get later records of the segment behind them. They are asked to take a hold first
// (lasting.go): while there is one there is no room, and the segment that has some ends. A copy
// made without a hold shows a gap to whoever reads beyond the zeros (gap.go).
//
// Rejected: room without zeros (fallocate). The file system must note at each fsync which blocks
// have been written: 0.17 ms. Rejected too: a record that covers the room, so that the original's
// tools would pass over it. Each group would have to write a new head of that record, and readers
// that wait at the end of the log would have to know it.
const (
	mostRoom  = 256 << 10 // bytes
	leastRoom = 4 << 10
)

// makeRoom writes zeros behind the newest group, which has just been written and ends at the offset
// end of a segment, if that is where the file ends. A small segment gets little room: as much as it
// has records. A group that would fill most of the room gets none. The caller is the leader.
func (w *writer) makeRoom(g *group, seg uint64, end int64) error {
	l := w.log
	if w.room.seg != seg {
		w.room = tail{seg: seg}
	}
	if !l.opts.SyncEach || end < w.room.off || g.size() > mostRoom/4 || l.holds.pinned() {
		return nil
	}
	size := min(max(end, leastRoom), mostRoom)
	if l.opts.Limit > 0 {
		size = min(size, l.opts.Limit-end)
	}
	if size <= 0 {
		return nil
	}
	if w.zeros == nil {
		w.zeros = make([]byte, mostRoom)
	}
	_, err := w.f.WriteAt(w.zeros[:size], end)
	w.room.off = end + size
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		w.room.off = math.MaxInt64
		_ = w.f.Truncate(end) // zeros that stay do no harm
		err = nil
	}
	if err != nil {
		return fmt.Errorf("make room in the update log: %w", err)
	}
	return nil
}

// giveRoomBack cuts the newest segment off where its records end, and reports whether it did. Until
// the file is synced a power cut may bring the zeros back. The caller is the leader, or there will
// be none any more, and holds syncMu.
func (w *writer) giveRoomBack(at tail) (cut bool, err error) {
	if w.room.seg != at.seg || w.room.off <= at.off {
		return false, nil
	}
	if err := w.log.Err(); err != nil { // nothing is written any more
		return false, err
	}
	w.room = tail{}
	if err := w.f.Truncate(at.off); err != nil {
		return false, fmt.Errorf("cut off the room in the update log: %w", err)
	}
	return true, nil
}
