package ulog

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"gotycoon/internal/pieces"
	"gotycoon/internal/vfs"
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
// (remember.go). If the log remembers a position of another size between WriteAhead and the
// update's turn, the value in the file is at the wrong offset. The file is then removed, and the
// value is written in the update's turn, as if it had never been written ahead (see fitting).
//
// Rejected: many records for one value, because the original's slaves could not read them. Rejected
// too: a file beside the log to which a record refers, because every removal, copy and tool would
// have to know about such files.

const (
	defaultAhead = 16 << 20
	aheadPrefix  = "value-"
	aheadPiece   = 4 << 20 // bytes of the value between two syncs
	tailSize     = 1 + commitSize
)

// ErrAhead means that a large value could not be written before its turn. Nothing was appended, and
// the log goes on.
var ErrAhead = errors.New("cannot write a large value")

// An aheadFile is the file with a value that was written before its update's turn: the log's side
// of an Ahead.
type aheadFile struct {
	log  *Log
	f    vfs.File
	path string
	from int64 // where the value begins in the file
	size int   // of the value
	crc  uint32

	used bool // appended or discarded; guarded by Log.mu
}

// aheads lets one goroutine at a time write a value ahead.
type aheads struct {
	turn chan struct{} // holds a token while a goroutine writes a value ahead
	made int           // values written ahead, for the names of their files; guarded by turn
}

// TakesAhead reports whether values of a size are written ahead. A log without a limit has one
// segment for ever and takes none.
func (l *Log) TakesAhead(size int) bool { return l.opts.Limit > 0 && size >= l.opts.Ahead }

// WriteAhead writes the value of an update before the update is appended. The value must not change
// afterwards (Update.Stays). WriteAhead takes as long as the disk needs, and waits while another
// value is being written, so the caller holds no lock that others need. Before it writes,
// WriteAhead asks admit whether there is room; a nil admit means that there always is. WriteAhead
// returns nil for an update whose value is not written ahead. An ErrAhead, or the error of admit,
// concerns this update only.
func (l *Log) WriteAhead(u *Update, admit func() error) (*Ahead, error) {
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
	if err := a.write(u.Value); err != nil {
		a.Discard()
		return nil, err
	}
	return &Ahead{File: a}, nil
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
	a := &aheadFile{log: l, size: len(u.Value), path: filepath.Join(l.dir, fmt.Sprint(aheadPrefix, l.aheads.made, segmentExt, unborn))}
	a.from = int64(len(segmentFront(header{}, state, 0)) + RecordHead + messageSize(u) - len(u.Value))
	if a.f, err = l.fs.OpenFile(a.path, create|os.O_EXCL, filePerm); err != nil {
		return nil, a.failed(err)
	}
	if err = l.fs.Lock(a.f, 0); err != nil { // the original takes the lock of the newest segment
		err = a.failed(err)
		a.Discard()
		return nil, err
	}
	return a, nil
}

// segmentFront returns what stands in front of the first update of a segment that begins behind the
// stamp last.
func segmentFront(head header, state []byte, last Stamp) []byte {
	b := appendCommit(encodeHeader(head), headerSize, last, 0)
	return append(b, repeated(state, last)...)
}

// write puts the value on the disk, with zeros where the rest of the segment will be.
func (a *aheadFile) write(value []byte) error {
	if _, err := a.f.WriteAt(make([]byte, a.from), 0); err != nil {
		return a.failed(err)
	}
	off := a.from
	for len(value) > 0 {
		if err := a.log.usable(); err != nil {
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
			return a.failed(err)
		}
	}
	return nil
}

// failed logs why the value could not be written, and returns the error.
func (a *aheadFile) failed(err error) error {
	a.log.logger.Warn("cannot write a large value to the update log, its update is refused", "file", a.path, "bytes", a.size, "error", err)
	return fmt.Errorf("%w: %w", ErrAhead, err)
}

// Discard removes the value, unless its update has been appended.
func (a *aheadFile) Discard() {
	a.log.mu.Lock()
	used := a.used
	a.used = true
	a.log.mu.Unlock()
	if !used {
		a.drop()
	}
}

// drop closes and removes the file. When the log has ended, drop does not remove the file: another
// process may have opened the log by now, whose Open has removed our file, and a file of the same
// name may be that process's own.
func (a *aheadFile) drop() {
	if err := a.f.Close(); err != nil {
		a.log.logger.Warn("closing a large value of the update log", "file", a.path, "error", err)
	}
	if a.log.usable() != nil {
		return
	}
	if err := a.log.fs.Remove(a.path); err != nil {
		a.log.logger.Warn("removing a large value from the update log", "file", a.path, "error", err)
	}
}

// usable returns an error that says why nothing can be appended.
func (l *Log) usable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.usableLocked()
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
		a.drop()
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

// isAhead reports whether a file of the log's directory has a value that was written ahead.
func isAhead(name string) bool {
	return strings.HasPrefix(name, aheadPrefix) && strings.HasSuffix(name, segmentExt+unborn)
}

// abandon closes the files of a group that will not be written because the log has ended. Open
// removes them.
func (g *group) abandon() {
	for _, v := range g.large {
		if v.ahead != nil {
			_ = v.ahead.f.Close() // why the log has ended says more
		}
	}
}
