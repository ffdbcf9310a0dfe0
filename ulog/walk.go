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
		if !r.noticed { // otherwise the loss has been told already
			r.torn = r.limit - torn.off
		}
		r.report(fmt.Errorf("%s: passed over %d bytes: %w", r.scan.path, r.limit-torn.off, torn))
	}
	return r.nextSegment()
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
		// The header's stamp would be wrong here: while the log goes over to the next segment, the
		// header may still promise more than the records have.
		r.had = max(r.had, r.scan.last)
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
