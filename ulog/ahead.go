package ulog

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"gotycoon/internal/pieces"
	"gotycoon/ulog/update"
)

// # Large values go ahead
//
// The log is written in one order. A value of 250 MiB that is written when its turn has come makes
// every later update wait until the disk has taken it: a second, when the disk takes 250 MiB a
// second. So a value of Options.Ahead bytes and more is written before its turn, by the goroutine
// that stores it, which holds no lock and has no stamp yet. The value goes into a file of its own,
// at the offset that it will have in a segment. When the update's turn comes, the present segment
// ends, the few bytes around the value are written, and the file is renamed: it is the next
// segment, like any other.
//
//	         0                              from              from+size
//	         ┌─────────┬──────────┬─────────┬─────────────────┬──────────┬────────┐
//	ahead    │ zeros                        │ value           │ zeros             │ .new
//	         ├─────────┼──────────┼─────────┼─────────────────┼──────────┼────────┤
//	in turn  │ header, │ position │ record  │ value           │ end mark │ commit │ .ulog
//	         │ boundary│ repeated │ begins  │                 │          │ record │
//	         └─────────┴──────────┴─────────┴─────────────────┴──────────┴────────┘
//
// The value is synced in pieces of 4 MiB, so that no other fsync waits for more than one piece. The
// zeros take the room on the disk beforehand, so that the update cannot fail in its turn for want
// of space. Until the file is renamed no reader and no removal sees it as a segment, and Open
// removes it. An error before the update's turn concerns this update only. The file is synced with
// all its parts before it is renamed: a power cut leaves the old end of the log or the whole
// segment.
//
// The offset of the value depends on the position record that each segment repeats at its beginning
// (position.go). If the log remembers a position of another size between WriteAhead and the
// update's turn, the value in the file is at the wrong offset. The file is then removed, and the
// value is written in the update's turn, as if it had never been written ahead (see fitting).
//
// Rejected: many records for one value, because the original's slaves could not read them. Rejected
// too: a file beside the log to which a record refers, because every removal, copy and tool would
// have to know about such files.

const (
	aheadPiece = 4 << 20 // bytes of the value between two syncs
	tailSize   = 1 + commitSize
)

// ErrAhead means that a large value could not be written before its turn. Nothing was appended, and
// the log goes on.
var ErrAhead = errors.New("cannot write a large value")

// WriteAhead writes the value of an update before the update is appended. The value must not change
// afterwards (Update.Stays). WriteAhead takes as long as the disk needs, and waits while another
// value is being written, so the caller holds no lock that others need. Before it writes,
// WriteAhead asks admit whether there is room; a nil admit means that there always is. WriteAhead
// returns nil for an update whose value is not written ahead. An ErrAhead, or the error of admit,
// concerns this update only.
func (l *Log) WriteAhead(u *Update, admit func() error) (*update.Ahead, error) {
	if !u.Stays || u.Op != OpSet || !l.TakesAhead(len(u.Value)) {
		return nil, nil
	}
	if _, err := encodedSize([]Update{*u}); err != nil {
		return nil, err
	}
	select {
	case l.aheads.turn <- struct{}{}:
	case <-l.failed:
		return nil, l.Err()
	}
	defer func() { <-l.aheads.turn }()
	if admit != nil {
		if err := admit(); err != nil {
			return nil, err
		}
	}
	a, err := l.newAhead(u)
	if err != nil {
		return nil, err
	}
	if err := l.writeAhead(a, u.Value); err != nil {
		l.discard(a)
		return nil, err
	}
	return &update.Ahead{File: a, Remove: func() { l.discard(a) }}, nil
}

// newAhead creates the file for the value of an update. The caller has the turn.
func (l *Log) newAhead(u *Update) (*aheadFile, error) {
	l.mu.Lock()
	err, state := l.usableLocked(), l.note.state
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	l.aheads.made++
	a := &aheadFile{size: len(u.Value), path: filepath.Join(l.dir, fmt.Sprint(aheadPrefix, l.aheads.made, segmentExt, unborn))}
	a.from = int64(len(segmentFront(header{}, state, 0)) + RecordHead + messageSize(u) - len(u.Value))
	if a.f, err = l.fs.OpenFile(a.path, create|os.O_EXCL, filePerm); err != nil {
		return nil, l.aheadFailed(a, err)
	}
	if err = l.fs.Lock(a.f, 0); err != nil { // the original takes the lock of the newest segment
		err = l.aheadFailed(a, err)
		l.discard(a)
		return nil, err
	}
	return a, nil
}

// writeAhead puts a value on the disk, with zeros where the rest of the segment will be.
func (l *Log) writeAhead(a *aheadFile, value []byte) error {
	if _, err := a.f.WriteAt(make([]byte, a.from), 0); err != nil {
		return l.aheadFailed(a, err)
	}
	off := a.from
	for len(value) > 0 {
		if err := l.usable(); err != nil {
			return err
		}
		piece := value[:min(aheadPiece, len(value))]
		err := pieces.Each(piece, func(p []byte) error {
			a.crc = crc32.Update(a.crc, castagnoli, p)
			n, err := a.f.WriteAt(p, off)
			off += int64(n)
			return err
		})
		if value = value[len(piece):]; len(value) == 0 && err == nil {
			_, err = a.f.WriteAt(make([]byte, tailSize), off)
		}
		if err == nil {
			err = a.f.Sync()
		}
		if err != nil {
			return l.aheadFailed(a, err)
		}
	}
	return nil
}

// aheadFailed logs why a value could not be written, and returns the error.
func (l *Log) aheadFailed(a *aheadFile, err error) error {
	l.logger.Warn("cannot write a large value to the update log, its update is refused", "file", a.path, "bytes", a.size, "error", err)
	return fmt.Errorf("%w: %w", ErrAhead, err)
}

// discard removes a value, unless its update has been appended.
func (l *Log) discard(a *aheadFile) {
	l.mu.Lock()
	used := a.used
	a.used = true
	l.mu.Unlock()
	if !used {
		l.drop(a)
	}
}

// drop closes and removes the file of a value. When the log has ended, drop does not remove the
// file: another process may have opened the log by now, whose Open has removed our file, and a file
// of the same name may be that process's own.
func (l *Log) drop(a *aheadFile) {
	if err := a.f.Close(); err != nil {
		l.logger.Warn("closing a large value of the update log", "file", a.path, "error", err)
	}
	if l.usable() != nil {
		return
	}
	if err := l.fs.Remove(a.path); err != nil {
		l.logger.Warn("removing a large value from the update log", "file", a.path, "error", err)
	}
}

// fitting returns the file that becomes the segment of a group, or nil when the group has to be
// written. A file fits when its value is at the right offset and is the only large value of the
// group. fitting removes the files that do not fit. The caller is the leader.
func (w *writer) fitting(g *group) (fit *aheadFile) {
	for i := range g.large {
		v := &g.large[i]
		a := v.ahead
		if a == nil {
			continue
		}
		front := len(segmentFront(header{}, w.stated.state, 0))
		if len(g.large) == 1 && a.from == int64(front+v.at) && len(g.buf) == v.at+1 && a.size == len(v.value) {
			return a
		}
		v.ahead = nil
		w.log.drop(a)
	}
	return nil
}

// adopt makes the file with the value of a group the next segment, which then holds the group. The
// caller is the leader.
func (w *writer) adopt(g *group, a *aheadFile) (tail, error) {
	l := w.log
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	w.next.Store(false)
	at, err := w.endSegmentLocked()
	if err != nil {
		return tail{}, errors.Join(err, a.f.Close())
	}
	next := tail{at.seg + 1, a.from + int64(a.size) + tailSize, g.last, at.records + uint64(g.count-g.notes)}
	head := header{next.off, max(g.last, w.headed.last)}
	record := g.large[0].at
	g.seal()
	front := append(segmentFront(head, w.stated.state, at.last), g.buf[:record]...)
	if _, err = a.f.WriteAt(front, 0); err == nil {
		_, err = a.f.WriteAt(g.buf[record:], a.from+int64(a.size))
	}
	if err == nil {
		err = a.f.Sync()
	}
	if err == nil {
		err = l.nameSegment(a.path, next.seg)
	}
	if err != nil {
		return tail{}, l.fail(errors.Join(fmt.Errorf("begin segment: %w", err), a.f.Close()))
	}
	return next, w.beginInLocked(a.f, head, at, next)
}
