package ulog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"gotycoon/internal/vfs"
)

const lockWait = 10 * time.Second

// errNewest says that another segment has become the newest while this one was waited for.
var errNewest = errors.New("a newer segment exists")

// lock takes the lock the original takes, too. Its holder may have begun another segment meanwhile.
func (l *Log) lock(f vfs.File, n uint64) error {
	err := l.fs.Lock(f, 0)
	if errors.Is(err, vfs.ErrLocked) && !l.opts.TryLock {
		l.logger.Warn("waiting for another process to release the update log", "dir", l.dir)
		err = l.fs.Lock(f, lockWait)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.segmentPath(n), err)
	}
	return l.isNewest(n)
}

// isNewest returns errNewest where segment n is not the newest any more.
func (l *Log) isNewest(n uint64) error {
	nums, err := listSegments(l.fs, l.dir)
	if err == nil && (len(nums) == 0 || nums[len(nums)-1] != n) {
		err = errNewest
	}
	return err
}

// newestHeaderStamp returns the largest stamp in the headers of the segments before the newest. What is wrong with them is said: nobody may
// need their records now, and then no reader would ever complain.
func (p *Prepared) newestHeaderStamp() (last Stamp, err error) {
	nums, err := listSegments(p.log.fs, p.log.dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	for _, num := range nums {
		if num >= p.n {
			break
		}
		if h, herr := p.checkHead(num); herr == nil {
			last = max(last, h.last)
		}
	}
	return last, err
}

// neverBegun reports whether a segment is empty, or as a crash or a full disk leaves the first one of a log that was just being created: too
// short for a record, and holding nothing but zeros or the front of what beginSegment writes.
func neverBegun(f vfs.File, size int64) (bool, error) {
	const fresh = headerSize + commitSize
	if size > fresh {
		return false, nil
	}
	b := make([]byte, fresh)
	if _, err := f.ReadAt(b[:size], 0); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	want := appendHeader(nil, header{size: fresh})[:min(size, headerSize-8)]
	return bytes.Equal(b, make([]byte, fresh)) || size < fresh && bytes.HasPrefix(b, want), nil
}

// boundaryStamp returns the stamp for a commit record without records.
func (l *Log) boundaryStamp() Stamp {
	if l.last == 0 {
		l.last = StampAt(l.opts.Now())
	}
	return l.last
}

// createSegment creates segment n and makes it survive a power cut. The segment gets its name when it has its header on the disk, so that
// an empty segment always is one that has lost its updates, and never one that a crash has left unfinished.
func (l *Log) createSegment(n uint64, last, promised Stamp) (vfs.File, header, error) {
	path := l.segmentPath(n) + unborn
	f, err := l.fs.OpenFile(path, create, filePerm)
	if err != nil {
		return nil, header{}, err
	}
	head := header{}
	if err = l.fs.Lock(f, lockWait); err == nil {
		head, err = l.beginSegment(f, last, promised)
	}
	if err == nil {
		err = l.nameSegment(path, n)
	}
	if err != nil {
		return nil, header{}, errors.Join(err, f.Close())
	}
	return f, head, nil
}

// nameSegment makes a file segment n, also after a power cut. What it holds is on the disk.
func (l *Log) nameSegment(path string, n uint64) error {
	name := l.segmentPath(n)
	if _, err := l.fs.Stat(name); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w", name, cmp.Or(err, os.ErrExist))
	}
	if err := l.fs.Rename(path, name); err != nil {
		return err
	}
	return l.fs.SyncDir(l.dir)
}

// beginSegment gives an empty segment its header and a commit record of zero records, and syncs it.
func (l *Log) beginSegment(f vfs.File, last, promised Stamp) (header, error) {
	head := header{headerSize + commitSize, max(last, promised)}
	b := appendHeader(nil, head)
	b = appendCommit(b, headerSize, last, 0)
	if err := f.Truncate(0); err != nil {
		return head, err
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		return head, err
	}
	return head, f.Sync()
}

// all accepts everything good up to limit. A torn tail is no error.
func (s *scanner) all(limit int64) error {
	for {
		err := s.next(limit)
		var torn *tornError
		var damage *DamageError
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.As(err, &torn):
			return nil
		case errors.As(err, &damage):
			return adviseRepair(damage)
		default:
			return err
		}
	}
}

func adviseRepair(err *DamageError) error {
	return fmt.Errorf("%w (records before it are good; put back a copy of %s. To go on without what comes after, bring each database file up to date with "+
		"kttimedmgr vacuum -onr FILE, and then empty the damaged one with truncate -s 0 %s: who needs its updates then meets a gap)",
		err, filepath.Base(err.File), err.File)
}

// resume marks the end of foreign records and makes everything kept durable, as the header says afterwards.
func (l *Log) resume(f vfs.File, s *scanner) (int64, header, error) {
	off := s.off
	if !s.closed {
		b := appendCommit(nil, 0, l.boundaryStamp(), 0)
		if _, err := f.WriteAt(b, off); err != nil {
			return 0, s.head, err
		}
		off += int64(len(b))
	}
	if err := f.Sync(); err != nil {
		return 0, s.head, err
	}
	l.sealed = s.head
	head := header{off, max(l.last, s.head.last)}
	if head == s.head {
		return off, head, nil
	}
	_, err := f.WriteAt(appendHeader(nil, head), 0)
	return off, head, err
}
