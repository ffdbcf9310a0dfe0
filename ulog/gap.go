package ulog

// # Why a gap is an error of Next
//
// Segments are removed while readers work, by ulog_remove, by trimming, and by people. A reader
// that just goes on with the next segment passes over the updates of the removed segments. A flag
// that callers look at now and then cannot prevent such a loss: the reader finds the gap when it
// opens a segment, perhaps in the middle of a call that delivers nothing. An earlier version had
// such a flag. A master looked at the flag only when an update came, and until then told its
// follower, in heartbeats, that the follower had everything.
//
// So Next returns a *GapError, again and again, and never io.EOF, until the caller has said with
// SkipGap that it goes on without the missing records. io.EOF means: everything up to here was
// delivered, or is proven not to exist.
//
// The proof. Let the reader have everything up to stamp H, and let the next segment that exists be
// N. Stamps grow through the log. N begins with a record of stamp F. In a log of ours this record
// is a commit record with the stamp of the last record in front of N; in a log of the original it
// is the first update of N. In both cases no record in front of N is newer than F. If the segments
// directly in front of N are there, nothing is missing. If they are gone and F <= H, the reader has
// everything that was in them. If they are gone and F > H, they may have held something that the
// reader lacks.
//
//	segments    1     2     (3)    4
//	F           –     10    20     30     (3) was removed
//	end         10    20    30     …
//
//	A reader at the end of segment 2 has H = 20, and segment 4 has F = 30: a gap from 20 to 30.
//	A reader that was to begin after H = 30 has no gap.

// join notes a gap if segments between number before and the open segment are gone and may have
// held records that the reader lacks. A missing number alone proves no loss: a power cut may bring
// some of several removed segments back.
//
// Bytes that were passed over at the end of the segment before are a loss as well if the open
// segment, which is ours, tells of newer records in front of it. A server leaves no such segment
// behind, but a copy of files that were being written may be one (room.go).
func (r *Reader) join(before uint64) {
	torn := r.torn
	r.torn = 0
	if r.seg == before+1 {
		if front, ours := boundary(r.fs, r.dir, r.seg); torn > 0 && ours && front > r.had {
			r.missed(GapError{To: front, First: before, Last: before, Short: torn})
		}
		return
	}
	if front := r.front(); front > r.had {
		r.begins = front
		r.missed(GapError{To: front, First: before + 1, Last: r.seg - 1})
	}
}

// SkipGap makes Next go on behind the gap that it has returned. The records within the gap are lost
// to this reader.
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

// goneNewest notes a gap if the segment that the log is writing has been removed from the
// directory. The log itself does not notice: its open file goes on taking writes.
func (r *Reader) goneNewest(safe tail) bool {
	if r.log == nil || safe.seg <= r.seg || safe.last <= r.had {
		return false
	}
	r.missed(GapError{To: safe.last, First: r.seg + 1, Last: safe.seg})
	return true
}

// noticeShort notes, once, that the open segment has lost bytes: its header names a size that the
// file does not have. Two kinds of segments may be short without a loss, because a process may be
// writing them just now: an empty segment, and a segment whose header names only itself and the
// commit record behind it. Such a segment counts when a newer segment exists (final), or when it is
// empty and has had updates (see emptied).
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

// emptied reports whether the open segment, which is empty, has had updates that are gone. It is
// asked only of a log that nobody here has open: a Log mends such a segment when it is opened, and
// begins no segment without a header. The first segment of a log that was just created may be
// empty.
func (r *Reader) emptied() (bool, error) {
	if r.log != nil || r.limit > 0 {
		return false, nil
	}
	if r.seg > 1 {
		return true, nil
	}
	return used(r.fs, r.dir)
}
