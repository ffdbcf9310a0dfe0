package ulog

import (
	"errors"
	"fmt"
	"path/filepath"

	"gotycoon/internal/vfs"
)

// # Segments that have lost their updates
//
// A segment that was cut to nothing, cut off, or whose head is damaged has lost updates, maybe
// acknowledged ones. Open logs each such segment with the file's name. Whoever needs the updates
// meets the gap when reading, but perhaps nobody needs them today, and a backup that could bring
// them back is thrown away tomorrow.
//
// A gap in front of the newest segment is in the log already: a reader that passes a damaged older
// segment reports it. But the newest segment goes on being written, and with the next group it
// would look sound. Therefore Open leaves a mark that stays: it begins a new segment, leaves one
// number out, and gives the new segment a first stamp later than every update that can be missing.
// A reader with an older position sees a number missing and a later first stamp, and reports
// removed segments (gap.go). That is right, because the updates are gone.
//
//	0000000006.ulog   last stamp 600
//	0000000007.ulog   empty; was up to 900      Open gives it a header again, stamp 600
//	0000000009.ulog   new, begins with 2000     the mark; there is no number 8
//
// A reader that has everything up to 800 meets a gap from 800 to 2000. A reader that has everything
// up to 2000 meets none.

const remedyOlder = "Put back a copy of it if there is one: who still needs its updates meets a gap there, and fails or fetches a copy"

// remedyNewest returns what helps when segment n, the newest, has lost updates. The segment that
// leaveGap begins has to be removed as well: with the mark of the gap in the log, a start that
// needs the updates would be refused even after a complete copy of the segment has been put back.
func (d *folder) remedyNewest(n uint64) string {
	return fmt.Sprintf("If there is a copy of it, stop the server before it takes updates, put the copy in its place, remove %s, which marks the gap, and start "+
		"again. Otherwise all who need the missing updates meet a gap there, and fail or fetch a copy", d.segmentPath(n+2))
}

// headFlaw says what is wrong with a segment, as far as its header and its size tell; "" where
// nothing is.
func headFlaw(fs vfs.FS, dir string, n uint64, h header, size int64, err error) string {
	path := filepath.Join(dir, segmentName(n))
	info, serr := fs.Stat(path)
	switch {
	case serr == nil && info.Size() == 0:
		return path + " is empty: the updates that it had are missing"
	case err != nil:
		return fmt.Sprintf("%s has a damaged head, so that its updates cannot be read: %v", path, err)
	case size < h.size:
		return fmt.Sprintf("%s has been cut off: %d bytes of updates are missing, of its %d", path, h.size-size, h.size)
	}
	return ""
}

// A fresh is a segment that was just created.
type fresh struct {
	f    vfs.File
	head header
	at   tail
}

// leaveGap begins the segment that marks the gap, two numbers above the damaged segment n, so that
// one number is left out. It does so before segment n is repaired: a process that dies in between
// leaves the mark beside the damage. In the other order it could leave a sound segment and no mark.
// The new segment begins with the stamp behind, which is greater than the promises in the header of
// segment n as far as that header can still be read (see behindLoss), and with what the log
// remembers.
func (d *folder) leaveGap(n uint64, behind Stamp, state []byte) (*fresh, error) {
	at := tail{seg: n + 2, last: behind}
	f, head, err := d.createSegment(at.seg, at.last, at.last)
	if err != nil {
		return nil, err
	}
	if at.off, err = repeatState(f, state, tail{seg: at.seg, off: head.size, last: at.last}); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &fresh{f, head, at}, nil
}

// goOnBehindGap ends the repaired segment, as rotate would, and makes the segment that marks the
// gap the newest. No other goroutine uses the log yet.
func (l *Log) goOnBehindGap(g *fresh) error {
	_, err := l.writer.f.WriteAt(encodeHeader(header{l.written.off, l.last}), 0)
	if err == nil {
		err = l.writer.f.Sync()
	}
	if err == nil {
		err = l.writer.f.Close()
	}
	if err != nil {
		return err
	}
	w := &l.writer
	w.f, w.headed, w.sealed = g.f, g.head, g.head
	l.written, l.synced, l.last = g.at, g.at, g.at.last
	l.past, l.told, l.promised, l.kept = g.head.last, g.head.last, g.head.last, g.head.last
	return nil
}
