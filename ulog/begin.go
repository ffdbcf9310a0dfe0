package ulog

import (
	"errors"
	"fmt"
	"path/filepath"

	"gotycoon/internal/vfs"
)

// Open opens the log in a directory for writing, and creates both when missing. It is Prepare and Begin. An incomplete group at the end of
// the newest segment is put aside and cut off, damage in front of that is a *DamageError.
func Open(dir string, o Options) (*Log, error) {
	p, err := Prepare(dir, o)
	if err != nil {
		return nil, err
	}
	return p.Begin()
}

// Begin mends the log and makes it ready to be written. p has ended afterwards, also with an error. Where there was no log when Prepare
// looked, and another process has made one since, Begin waits for that process and goes on with its log.
func (p *Prepared) Begin() (*Log, error) {
	l := p.log
	err := p.makeFirst()
	if err == nil {
		err = p.mend()
	}
	if err != nil {
		if l.gap != nil {
			err = errors.Join(err, l.gap.f.Close())
		}
		return nil, fmt.Errorf("open update log: %w", errors.Join(err, p.Close()))
	}
	p.good = scanner{} // it has a window
	l.publishLocked()  // nobody else has l yet
	l.flush.start(l)
	return l, nil
}

// makeFirst makes the directory and the first segment, where there are none, and locks and looks at it.
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

// makeDir creates the directory if need be, and makes its name survive a power cut. The identity of a log comes afterwards, so where there
// is one this has been done.
func (l *Log) makeDir() error {
	if _, err := l.fs.Stat(filepath.Join(l.dir, identityName)); err == nil {
		return nil
	}
	return vfs.MakeDir(l.fs, l.dir, dirPerm)
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
		if at.off, err = repeatState(p.f, l.follow.state, at); err != nil {
			return err
		}
	}
	l.f, l.headed, l.written, l.synced, l.stated = p.f, head, at, at, l.follow
	l.past, l.told, l.promised, l.kept = max(l.past, head.last), head.last, head.last, l.sealed.last
	if err = l.fs.SyncDir(l.dir); err != nil { // a process that died may have left names that a power cut would take
		return err
	}
	// The identity comes after the first segment: where it is, there was one with a header on the disk.
	if !p.known {
		if err = writeIdentity(l.fs, l.dir, l.id); err != nil {
			return err
		}
	}
	if err = l.removeUnborn(); err != nil || l.gap == nil {
		return err
	}
	return l.goOnBehindGap()
}

// beginEmpty begins a segment that has no header, and returns where to go on.
func (p *Prepared) beginEmpty() (off int64, head header, err error) {
	l := p.log
	last := l.boundaryStamp()
	if p.lost {
		if err = p.leaveGap(); err != nil {
			return 0, head, err
		}
	}
	head, err = l.beginSegment(p.f, last, last)
	l.sealed = head
	return head.size, head, err
}

// continueSegment cuts off what is torn, and returns where to go on.
func (p *Prepared) continueSegment() (off int64, head header, err error) {
	if p.lost {
		if err = p.leaveGap(); err != nil {
			return 0, head, err
		}
	}
	if err = p.log.cutTail(p.f, &p.good, p.size); err != nil {
		return 0, head, err
	}
	return p.log.resume(p.f, &p.good)
}
