package ulog

import (
	"fmt"
	"path/filepath"
)

// # Why a gap is an error of Next
//
// Segments are removed while readers work, by ulog_remove, by trimming, and by people. A reader
// that just goes on with the next segment passes over the updates of the removed ones. A flag that
// callers look at now and then cannot stop that: the reader finds the gap when it opens a segment,
// perhaps in the middle of a call that delivers nothing. There was such a flag, and a master that
// looked at it only when an update came told its follower, in a heartbeat, that everything was
// there.
//
// So Next returns a *GapError, again and again, and never io.EOF, until the caller has said with
// SkipGap that it goes on without the missing records. io.EOF means: everything up to here was
// delivered, or is proven not to exist.
//
// The proof. Let the reader have everything up to stamp H, and let the next segment that exists be
// N. Stamps grow through the log, and N begins with a record of stamp F: a commit record with the
// stamp of the last record in front of N or, in a log of the original, the first update of N. No
// record in front of N is newer than F. If the segments directly in front of N are there, nothing
// is missing. If they are gone and F <= H, nothing that the reader lacks was in them; otherwise
// there may have been something.
//
//	segments    1     2     (3)    4
//	F           –     10    20     30     (3) was removed
//	end         10    20    30     …
//
//	A reader at the end of segment 2 has H = 20, and segment 4 has F = 30: a gap from 20 to 30.
//	A reader that was to begin after H = 30 has no gap.

// GapError says that records newer than From, and not newer than To, may have been removed from the
// log before they were read.
type GapError struct {
	Dir   string // of the log
	From  Stamp  // the reader has everything up to here
	To    Stamp  // nothing newer is missing; 2^64-1: not known
	First uint64 // number of the first segment that is gone, or that has lost bytes
	Last  uint64 // and of the last one
	Short int64  // bytes missing from segment First, at least; 0: whole segments are gone
	Empty bool   // nothing is left of segment First
}

// Error names what is gone and the stamps that it may have held.
func (e *GapError) Error() string {
	switch {
	case e.Empty:
		return fmt.Sprintf("%s is empty: the updates that it had are missing", filepath.Join(e.Dir, segmentName(e.First)))
	case e.Short > 0:
		return fmt.Sprintf("%s: at least %d bytes are missing: updates after the time stamp %d may be lost",
			filepath.Join(e.Dir, segmentName(e.First)), e.Short, e.From)
	}
	text := fmt.Sprintf("%s: update log segments %d to %d are missing: updates after the time stamp %d may have been in them",
		e.Dir, e.First, e.Last, e.From)
	if e.First == e.Last && e.First > 1 { // maybe the mark that leaveGap leaves
		text += fmt.Sprintf(". If an earlier start has said that %s lost updates, they are meant, and %s marks the gap", segmentName(e.First-1), segmentName(e.First+1))
	}
	return text
}

// Trimmed reports whether only the oldest segments are gone, and the reader asked for everything.
// Tools that print a log say nothing then: a log that was trimmed is sound.
func (e *GapError) Trimmed() bool { return e.From == 0 && e.First == 1 && e.Short == 0 }

// Lost returns the *GapError or *DamageError that Next would return at once, nil where there is
// none. A reader that has just been opened knows already whether the segments before the first one
// were needed.
func (r *Reader) Lost() error {
	switch {
	case r.gap != nil:
		return r.gap
	case r.damage != nil:
		return r.damage
	}
	return nil
}

// SkipGap makes Next go on behind the gap that it has returned. What lies between is lost to this
// reader.
func (r *Reader) SkipGap() {
	if r.gap == nil {
		return
	}
	if r.gap.To < maxStamp {
		r.had = max(r.had, r.gap.To)
	}
	r.gap = nil
}

// missed makes Next return a gap.
func (r *Reader) missed(e GapError) {
	e.Dir, e.From = r.dir, r.had
	r.gap, r.counted = &e, false
}

// join notes a gap where segments between number before and the open one are gone, and may have
// held something new to the reader. A power cut may bring any of several removed segments back, so
// a missing number alone proves no loss.
func (r *Reader) join(before uint64) {
	if r.seg == before+1 {
		return
	}
	if front := r.front(); front > r.had {
		r.begins = front
		r.missed(GapError{To: front, First: before + 1, Last: r.seg - 1})
	}
}

// front returns a stamp that no record in front of the open segment exceeds, maxStamp where the
// segment does not tell.
func (r *Reader) front() Stamp {
	if r.log != nil && r.safe.seg+1 == r.seg {
		return r.safe.last // the segment is being begun; everything in front of it is safe
	}
	if r.limit < headerSize {
		return maxStamp
	}
	rec, err := r.scan.record(headerSize, headerSize, r.limit)
	if err != nil {
		return maxStamp
	}
	return rec.stamp
}

// leave notes what the reader has when it is at the end of the open segment. The header does not
// tell: while the log goes over to the next segment, the header may still promise more than the
// records have.
func (r *Reader) leave() { r.had = max(r.had, r.scan.last) }

// goneNewest notes a gap where the segment that the log is writing has been removed, which the log
// itself does not notice.
func (r *Reader) goneNewest(safe tail) bool {
	if r.log == nil || safe.seg <= r.seg || safe.last <= r.had {
		return false
	}
	r.missed(GapError{To: safe.last, First: r.seg + 1, Last: safe.seg})
	return true
}

// noticeShort notes once that the open segment has lost bytes. The newest segment may also be about
// to be begun, with a header and a commit record.
func (r *Reader) noticeShort() error {
	missing := max(r.scan.head.size, headerSize) - r.limit
	begun := r.limit > 0 && r.scan.head.size != headerSize+commitSize
	if missing <= 0 || r.noticed {
		return nil
	}
	if !begun && !r.final {
		if gone, err := r.emptied(); err != nil || !gone {
			return err
		}
	}
	r.noticed = true
	r.had = max(r.had, r.scan.last)
	to := Stamp(maxStamp)
	if r.headed {
		to = r.scan.head.last
	}
	r.missed(GapError{To: to, First: r.seg, Last: r.seg, Short: missing, Empty: r.limit == 0})
	return nil
}
