package ulog

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"

	"gotycoon/internal/vfs"
)

// A note is what a position record remembers about the server that is followed (Position.State),
// and the record's stamp. Stamps put all notes into one order, together with the copies of notes
// that database files have.
//
// Open finds the newest note without reading more than the newest segment: each segment but the
// first begins with a group that repeats what was remembered last.
type note struct {
	state []byte
	at    Stamp
}

// Remembered returns the state of the newest position record and the record's stamp, nil where
// there is none. After Open the stamp may be that of the group which repeats the state: greater
// than the stamp of the first record with the state, and still less than that of any state
// remembered later.
func (l *Log) Remembered() (state []byte, at Stamp) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.note.state), l.note.at
}

// RememberedIn returns the newest note of the log in a directory, without opening the log. Other
// than Open it goes back through all segments until one of them has a note.
func RememberedIn(fs vfs.FS, dir string) (state []byte, at Stamp, err error) {
	nums, err := listSegments(fs, dir)
	for i := len(nums) - 1; i >= 0 && err == nil && state == nil; i-- {
		var n note
		n, err = segmentState(fs, filepath.Join(dir, segmentName(nums[i])))
		state, at = n.state, n.at
	}
	return state, at, err
}

// repeatState writes the note of the segments before into a segment that has no updates yet and
// ends at the position at, syncs it, and returns the offset where the segment goes on. The note
// must be on the disk before any other group: Open looks for a note only in the newest segment, and
// other groups need not have one.
func repeatState(f vfs.File, state []byte, at tail) (int64, error) {
	b := repeated(state, at.last)
	if len(b) == 0 {
		return at.off, nil
	}
	if _, err := f.WriteAt(b, at.off); err != nil {
		return at.off, err
	}
	return at.off + int64(len(b)), f.Sync()
}

// repeated returns the group that repeats the note of the segments before at the beginning of a new
// segment. The note has a group of its own, because a crash may take away the group written behind
// it. The group's stamp is that of the last record before the segment.
func repeated(state []byte, last Stamp) []byte {
	if len(state) == 0 {
		return nil
	}
	msg := appendPosition(nil, &Position{State: state}, nil)
	b := appendFrameHead(nil, last, len(msg))
	b = append(append(b, msg...), endMark)
	return appendCommit(b, 0, last, 1)
}

// newestNote returns the note of a log that is being opened. found is the note in the newest
// segment. A process may have begun that segment and ended before it wrote the note into it (empty);
// then the segment before has the note.
func (d *folder) newestNote(found note, newest uint64, empty bool) (note, error) {
	if !empty || newest == 1 {
		return found, nil
	}
	nums, err := listSegments(d.fs, d.dir)
	i := slices.Index(nums, newest)
	if err != nil || i < 1 {
		return found, err
	}
	return segmentState(d.fs, d.segmentPath(nums[i-1]))
}

// segmentState returns the state that an older segment ends with. Damage is no error here: a reader
// that needs the damaged records reports it.
func segmentState(fs vfs.FS, path string) (note, error) {
	f, err := fs.OpenFile(path, readOnly, 0)
	if err != nil {
		return note{}, err
	}
	defer f.Close()
	head, err := readHeader(f)
	if err != nil {
		return note{}, nil
	}
	size, err := f.Size()
	if err != nil {
		return note{}, err
	}
	s := scanner{win: window{f: f}, path: path, head: head, off: headerSize, keeps: true}
	for err == nil {
		err = s.next(size)
	}
	var torn *tornError
	var damage *DamageError
	if !errors.Is(err, io.EOF) && !errors.As(err, &torn) && !errors.As(err, &damage) {
		return note{}, err
	}
	return s.state, nil
}
