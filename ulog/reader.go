package ulog

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"gotycoon/internal/vfs"
)

// ReaderOptions of OpenReader. The zero value is usable.
type ReaderOptions struct {
	// Report is given what the reader leaves out without an error: torn groups in older segments.
	// nil drops it.
	Report func(error)
}

// A Reader walks over the records of a log from some stamp on. It belongs to one goroutine.
//
// Next returns only records of groups that are complete and whose checksum matches; see scanner for
// the rules. It does not return commit records and position records: Entry.Origin says where an
// update was made.
type Reader struct {
	fs     vfs.FS
	dir    string
	after  Stamp
	report func(error)
	log    *Log // nil: files that others may write

	seg    uint64 // number of the open segment; 0: none yet
	f      vfs.File
	scan   scanner // over the open segment; records up to scan.off may be delivered
	pos    int64   // end of what was delivered or passed over
	limit  int64   // bytes below it do not change any more
	headed bool    // the header was read
	final  bool    // the segment does not grow any more

	had     Stamp        // the reader has everything up to here that the log had, see gap.go
	begins  Stamp        // of the first segment behind the last gap, unless that is the log's first
	gap     *GapError    // what Next returns until SkipGap
	damage  *DamageError // what Next returns until SkipDamage
	torn    int64        // bytes passed over at the end of the segment before
	noticed bool         // the open segment has lost bytes, and Next has reported it
	closed  bool

	origins []Origin // of the next records, from a position record
	passed  int      // origins already used

	safe    tail   // where the log was safe when the reader last looked
	records uint64 // the reader's place as in tail.records, once counted
	counted bool
}

// GapError says that records newer than From, and not newer than To, may have been removed from the
// log before they were read.
type GapError struct {
	Dir   string // of the log
	From  Stamp  // the reader has everything up to here
	To    Stamp  // no newer record is missing; maxStamp: not known
	First uint64 // number of the first segment that is gone, or that has lost bytes
	Last  uint64 // number of the last such segment
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

// Begins returns the stamp from which on the reader has everything that the log ever had; 0 is the
// beginning.
func (r *Reader) Begins() Stamp { return r.begins }

// Lost returns the *GapError or *DamageError that Next would return at once, nil where there is
// none. A reader that has just been opened knows already whether it needed segments that were in
// front of the first existing one and are gone.
func (r *Reader) Lost() error {
	switch {
	case r.gap != nil:
		return r.gap
	case r.damage != nil:
		return r.damage
	}
	return nil
}

// OnRoom has f asked for bytes before the reader makes a buffer for a large record. The bytes are
// those beyond the buffer that every reader has. f may wait until there is memory; its error
// becomes the error of Next, which can be called again. With a number below zero f is given bytes
// back, and its result does not count.
func (r *Reader) OnRoom(f func(bytes int) error) { r.scan.win.room = f }

// deliver takes one accepted record; ok says whether it is for the caller.
func (r *Reader) deliver() (e Entry, ok bool, err error) {
	rec, err := r.scan.record(r.pos, r.pos, r.scan.off)
	if err != nil {
		return e, false, fmt.Errorf("read %s: %w", r.scan.path, err)
	}
	r.pos = rec.end
	e = Entry{Stamp: rec.stamp, Message: rec.message()}
	switch {
	case isCommit(e.Message):
		return e, false, nil
	case isPosition(e.Message): // says where the updates behind it were made
		_, r.origins, err = parsePosition(r.origins[:0], e.Message)
		r.passed = 0
		if err != nil {
			return e, false, fmt.Errorf("read %s: stamp %d: %w", r.scan.path, e.Stamp, err)
		}
		return e, false, nil
	}
	if r.passed < len(r.origins) {
		e.Origin = r.origins[r.passed]
		r.passed++
	}
	r.records++
	return e, rec.stamp > r.after, nil
}

// scanOn accepts more records of the open segment.
func (r *Reader) scanOn() error {
	if r.headed {
		return r.scan.next(r.limit)
	}
	if r.limit < headerSize {
		return &tornError{0, errHeader}
	}
	return &DamageError{File: r.scan.path, Err: errHeader}
}

// refresh looks how far the open segment may be read now, and whether it grows further. It returns
// true if that is news. The order matters: a segment is complete before the next one exists, and as
// long as its header says.
func (r *Reader) refresh() (bool, error) {
	head := r.scan.head
	limit, final, err := r.extent()
	if err != nil {
		return false, err
	}
	news := limit != r.limit || final != r.final || head != r.scan.head
	r.limit, r.final = limit, final
	return news, nil
}

func (r *Reader) extent() (limit int64, final bool, err error) {
	if r.log != nil {
		safe := r.log.safeTail()
		r.safe = safe
		if safe.seg < r.seg { // just created
			return 0, false, nil
		}
		if safe.seg == r.seg { // checked or written by the log, all of it
			r.headed, r.scan.head.size = true, safe.off
			return safe.off, false, nil
		}
	}
	higher, err := segmentAfter(r.fs, r.dir, r.seg)
	if err != nil {
		return 0, false, err
	}
	if head, herr := readHeader(r.f); herr == nil {
		r.headed, r.scan.head = true, head
	}
	final = higher != 0 || r.log != nil && r.safe.seg > r.seg
	if limit, err = r.f.Size(); err == nil && r.headed && !final {
		limit, err = withoutRoom(r.f, limit, r.scan.head.size)
	}
	return limit, final, err
}

// countAtEnd notes the reader's place when it is at the end of the log.
func (r *Reader) countAtEnd(err error) {
	if r.log != nil && errors.Is(err, io.EOF) && r.safe.seg == r.seg && r.safe.off == r.pos {
		r.records, r.counted = r.safe.records, true
	}
}
