package ulog

import (
	"errors"
	"fmt"
	"io"

	"gotycoon/internal/vfs"
)

// Open opens the log in a directory for writing, and creates both when missing. It is Prepare and
// Begin. An incomplete group at the end of the newest segment is put aside and cut off; damage in
// front of it is a *DamageError.
func Open(dir string, o Options) (*Log, error) {
	p, err := Prepare(dir, o)
	if err != nil {
		return nil, err
	}
	return p.Begin()
}

// Begin mends the log and makes it ready to be written. It ends p, also when it returns an error.
// If there was no log when Prepare looked, and another process has made one since, Begin waits for
// that process and goes on with its log.
func (p *Prepared) Begin() (*Log, error) {
	l := p.log
	err := p.makeFirst()
	if err == nil {
		err = p.mend()
	}
	if err == nil {
		err = l.recallHolds()
	}
	if err != nil {
		if p.gap != nil {
			err = errors.Join(err, p.gap.f.Close())
		}
		return nil, fmt.Errorf("open update log: %w", errors.Join(err, p.Close()))
	}
	p.good = scanner{} // gives the memory of its window back
	l.publishLocked()  // without mu: no other goroutine has l yet
	l.flush.start(l)
	return l, nil
}

// makeFirst makes the directory and the first segment, where there are none, and locks and looks at
// the segment.
func (p *Prepared) makeFirst() error {
	if err := p.log.makeDir(); err != nil {
		return err
	}
	for p.f == nil {
		err := p.lock(create)
		if errors.Is(err, errNewest) { // another process was faster
			err = p.lookAtNewest()
		} else if err == nil {
			err = p.look()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mend makes the newest segment ready to be written.
func (p *Prepared) mend() (err error) {
	l := p.log
	at, head := tail{seg: p.n}, header{}
	if p.empty {
		at.off, head, err = p.beginEmpty()
	} else {
		at.off, head, err = p.continueSegment()
	}
	if err != nil {
		return err
	}
	at.last = l.last
	if at.off <= headerSize+commitSize {
		if at.off, err = repeatState(p.f, l.note.state, at); err != nil {
			return err
		}
	}
	l.writer.f, l.writer.headed, l.written, l.synced, l.writer.stated = p.f, head, at, at, l.note
	l.past, l.told, l.promised, l.kept = max(l.past, head.last), head.last, head.last, l.writer.sealed.last
	// A process that died may have created files and not synced their names; a power cut would take
	// such names away.
	if err = l.fs.SyncDir(l.dir); err != nil {
		return err
	}
	// The identity is written after the first segment is on the disk. So where there is an
	// identity, there was a segment with a header, and an empty segment has lost its updates (see
	// lostNewest).
	if !p.known {
		if err = writeIdentity(l.fs, l.dir, l.id); err != nil {
			return err
		}
	}
	if err = l.removeUnborn(); err != nil || p.gap == nil {
		return err
	}
	if err = l.goOnBehindGap(p.gap); err == nil {
		p.gap = nil
	}
	return err
}

// beginEmpty begins a segment that has no header, and returns where to go on.
func (p *Prepared) beginEmpty() (off int64, head header, err error) {
	l := p.log
	last := p.boundaryStamp()
	if p.lost {
		if p.gap, err = l.leaveGap(p.n, p.behindLoss(), l.note.state); err != nil {
			return 0, head, err
		}
	}
	head, err = l.beginSegment(p.f, last, last)
	l.writer.sealed = head
	return head.size, head, err
}

// continueSegment cuts off what is torn, and returns where to go on.
func (p *Prepared) continueSegment() (off int64, head header, err error) {
	l := p.log
	if p.lost {
		if p.gap, err = l.leaveGap(p.n, p.behindLoss(), l.note.state); err != nil {
			return 0, head, err
		}
	}
	if err = l.cutTail(p.f, &p.good, p.size); err != nil {
		return 0, head, err
	}
	if p.whole > p.size && p.good.off == p.size {
		l.logger.Info("cut zeros off the end of the update log: a process that dies leaves them, with -oas", "file", l.segmentPath(p.n), "offset", p.size, "size", p.whole-p.size)
		if err = p.f.Truncate(p.size); err != nil {
			return 0, head, err
		}
	}
	return p.resume(p.f, &p.good)
}

// boundaryStamp returns the stamp for a commit record without records: the newest stamp of the log.
// In a log without stamps the time becomes the newest stamp.
func (p *Prepared) boundaryStamp() Stamp {
	l := p.log
	if l.last == 0 {
		l.last = StampAt(l.opts.Now())
	}
	return l.last
}

// resume makes everything that was kept durable. It writes a commit record behind records of the
// original, which have none, syncs the segment, and then writes a header with the segment's size.
// In the other order a power cut could leave a header that promises records which are not on the
// disk.
func (p *Prepared) resume(f vfs.File, s *scanner) (int64, header, error) {
	l := p.log
	off := s.off
	if !s.closed {
		b := appendCommit(nil, 0, p.boundaryStamp(), 0)
		if _, err := f.WriteAt(b, off); err != nil {
			return 0, s.head, err
		}
		off += int64(len(b))
	}
	if err := f.Sync(); err != nil {
		return 0, s.head, err
	}
	l.writer.sealed = s.head
	head := header{off, max(l.last, s.head.last)}
	if head == s.head {
		return off, head, nil
	}
	_, err := f.WriteAt(encodeHeader(head), 0)
	return off, head, err
}

const copySize = 1 << 20

// cutTail cuts a segment off where the good records end, and logs that it did. The bytes are put
// aside first.
func (d *folder) cutTail(f vfs.File, s *scanner, size int64) error {
	if s.off == size {
		return nil
	}
	aside := fmt.Sprintf("%s.torn-%d", s.path, d.opts.Now().UnixMilli())
	if err := d.putAside(f, aside, s.off, size); err != nil {
		return fmt.Errorf("put aside the torn end of %s: %w", s.path, err)
	}
	d.logger.Warn("cut the torn end off the update log",
		"file", s.path, "offset", s.off, "size", size-s.off, "kept", aside)
	if err := f.Truncate(s.off); err != nil {
		return err
	}
	return f.Sync()
}

// putAside copies bytes of a segment to another file, behind a line that says where they come from.
// The line also keeps the file from beginning with the byte that makes a file a segment.
func (d *folder) putAside(f vfs.File, name string, from, to int64) (err error) {
	out, err := d.fs.OpenFile(name, create, filePerm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	line := fmt.Appendf(nil, "torn end of an update log segment, offset %d to %d\n", from, to)
	if _, err = out.WriteAt(line, 0); err != nil {
		return err
	}
	if err = copyRange(out, int64(len(line)), f, from, to); err != nil {
		return err
	}
	if err = out.Sync(); err != nil {
		return err
	}
	return d.fs.SyncDir(d.dir)
}

func copyRange(dst io.WriterAt, at int64, src io.ReaderAt, from, to int64) error {
	b := make([]byte, min(copySize, to-from))
	for from < to {
		b = b[:min(int64(len(b)), to-from)]
		if _, err := src.ReadAt(b, from); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if _, err := dst.WriteAt(b, at); err != nil {
			return err
		}
		from, at = from+int64(len(b)), at+int64(len(b))
	}
	return nil
}
