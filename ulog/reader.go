package ulog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gotycoon/internal/vfs"
)

// ReaderOptions of OpenReader. The zero value is usable.
type ReaderOptions struct {
	// Report is given what the reader leaves out without an error: torn groups in older segments.
	// nil drops it.
	Report func(error)
}

// An Entry is a record of the log.
type Entry struct {
	Stamp   Stamp
	Message []byte // see ParseMessage; valid until the next call of Next
	Origin  Origin // where the update was made, unless here
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
	noticed bool         // the open segment has lost bytes, and Next has reported it
	closed  bool

	origins []Origin // of the next records, from a position record
	passed  int      // origins already used

	safe    tail   // where the log was safe when the reader last looked
	records uint64 // the reader's place as in tail.records, once counted
	counted bool
}

// OpenReader reads the log in a directory, from the first record newer than after. The log may be
// open for writing in another process, and may be the original's.
func OpenReader(fs vfs.FS, dir string, after Stamp, o ReaderOptions) (*Reader, error) {
	r := &Reader{fs: fs, dir: dir, after: after, had: after, report: o.Report}
	if r.report == nil {
		r.report = func(error) {}
	}
	return r, r.start()
}

// NewReader reads the log from the first record newer than after. The reader sees what is as safe
// as the mode promises.
func (l *Log) NewReader(after Stamp) (*Reader, error) {
	r := &Reader{fs: l.fs, dir: l.dir, after: after, had: after, log: l}
	r.report = func(err error) { l.logger.Warn("reading the update log", "error", err) }
	l.countReaders(1)
	if err := r.start(); err != nil {
		_ = r.Close() // the first error says more
		return r, err
	}
	return r, nil
}

// start opens the segment to begin with, if there is one.
func (r *Reader) start() error {
	return again(func() error {
		seg, older, err := startSegment(r.fs, r.dir, r.after)
		if err != nil || seg == 0 {
			return err
		}
		if err = r.open(seg); err != nil {
			return err
		}
		if seg > 1 {
			r.begins = r.front()
		}
		r.join(older)
		return nil
	})
}

// Begins returns the stamp from which on the reader has everything that the log ever had; 0 is the
// beginning.
func (r *Reader) Begins() Stamp { return r.begins }

// again repeats a look at the directory that has met a segment which was just removed.
func again(f func() error) (err error) {
	for range 10 {
		if err = f(); !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return err
}

// Next returns the next record, or io.EOF when there is none for now. It returns a *GapError where
// records may have been removed before they were read, and a *DamageError where records cannot be
// read, each again and again until SkipGap or SkipDamage.
func (r *Reader) Next() (Entry, error) {
	if r.closed {
		return Entry{}, errClosed
	}
	for {
		if r.pos < r.scan.off {
			e, ok, err := r.deliver()
			if ok || err != nil {
				return e, err
			}
			continue
		}
		if err := r.advance(); err != nil {
			r.countAtEnd(err)
			if errors.Is(err, io.EOF) {
				r.scan.win.park()
			}
			return Entry{}, err
		}
	}
}

// countAtEnd notes the reader's place when it is at the end of the log.
func (r *Reader) countAtEnd(err error) {
	if r.log != nil && errors.Is(err, io.EOF) && r.safe.seg == r.seg && r.safe.off == r.pos {
		r.records, r.counted = r.safe.records, true
	}
}

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
	case isPosition(e.Message):
		return e, false, r.takePosition(e)
	}
	e.Origin = r.origin()
	r.records++
	return e, rec.stamp > r.after, nil
}

// OnRoom has f asked for bytes before the reader makes a buffer for a large record. The bytes are
// those beyond the buffer that every reader has. f may wait until there is memory; its error
// becomes the error of Next, which can be called again. With a number below zero f is given bytes
// back, and its result does not count.
func (r *Reader) OnRoom(f func(bytes int) error) { r.scan.win.room = f }

// takePosition takes what a position record says about the records behind it.
func (r *Reader) takePosition(e Entry) error {
	_, origins, err := parsePosition(r.origins[:0], e.Message)
	r.origins, r.passed = origins, 0
	if err != nil {
		return fmt.Errorf("read %s: stamp %d: %w", r.scan.path, e.Stamp, err)
	}
	return nil
}

// origin returns the origin of the next record.
func (r *Reader) origin() (o Origin) {
	if r.passed < len(r.origins) {
		o = r.origins[r.passed]
		r.passed++
	}
	return o
}

// advance accepts more records, in the next segment if need be. io.EOF means that there are none
// for now.
func (r *Reader) advance() error {
	if err := r.Lost(); err != nil {
		return err
	}
	if r.f == nil {
		return r.nextSegment()
	}
	err := r.scanOn()
	if err == nil {
		return nil
	}
	grown, rerr := r.refresh()
	if grown || rerr != nil {
		return rerr
	}
	var torn *tornError
	switch {
	case errors.As(err, &r.damage):
		return r.damage
	case !errors.As(err, &torn) && !errors.Is(err, io.EOF):
		return err
	}
	if nerr := r.noticeShort(); nerr != nil || r.gap != nil {
		return cmp.Or[error](nerr, r.Lost())
	}
	if !r.final {
		return io.EOF
	}
	if torn != nil && torn.off < r.limit {
		r.report(fmt.Errorf("%s: passed over %d bytes: %w", r.scan.path, r.limit-torn.off, torn))
	}
	return r.nextSegment()
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
	limit, err = r.f.Size()
	return limit, higher != 0 || r.log != nil && r.safe.seg > r.seg, err
}

// nextSegment opens the segment behind the open one, or returns io.EOF. Where records may be
// missing between the two, the gap stands in front of the new one.
func (r *Reader) nextSegment() error {
	safe := tail{}
	// Read before the directory: what is safe now has a file there, unless the file was removed.
	if r.log != nil {
		safe = r.log.safeTail()
	}
	if r.f != nil {
		r.leave()
	}
	err := again(func() error {
		n, err := segmentAfter(r.fs, r.dir, r.seg)
		if err != nil {
			return err
		}
		if n == 0 {
			return io.EOF
		}
		from := r.seg
		if err = r.open(n); err == nil {
			r.join(from)
		}
		return err
	})
	if errors.Is(err, io.EOF) && r.goneNewest(safe) || err == nil && r.gap != nil {
		return r.gap
	}
	return err
}

// open makes segment n the open one.
func (r *Reader) open(n uint64) error {
	path := filepath.Join(r.dir, segmentName(n))
	f, err := r.fs.OpenFile(path, readOnly, 0)
	if err != nil {
		return fmt.Errorf("open update log segment: %w", err)
	}
	if r.f != nil {
		if err := r.f.Close(); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	r.seg, r.f, r.pos = n, f, headerSize
	r.scan = scanner{win: r.scan.win.over(f), path: path, off: headerSize}
	r.limit, r.headed, r.final, r.noticed, r.origins = 0, false, false, false, nil
	_, err = r.refresh()
	return err
}

// SkipDamage makes Next go on behind the damage that it has returned: at the end of what the header
// of the segment vouches for, or with the next segment. What lies between is lost to this reader.
func (r *Reader) SkipDamage() {
	if r.damage == nil {
		return
	}
	to := r.limit
	if r.headed {
		to = min(r.scan.head.size, r.limit)
	}
	r.damage, r.origins = nil, nil
	r.counted = false
	if r.headed && r.scan.head.size <= r.limit {
		r.had = max(r.had, r.scan.head.last)
	}
	r.pos, r.scan.off = to, to
	r.headed = true
}

// Close gives the open segment back.
func (r *Reader) Close() error {
	if r.closed {
		return errClosed
	}
	r.closed = true
	r.scan.win.park()
	if r.log != nil {
		r.log.countReaders(-1)
	}
	if r.f == nil {
		return nil
	}
	return r.f.Close()
}
