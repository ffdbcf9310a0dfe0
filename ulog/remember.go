package ulog

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"gotycoon/internal/vfs"
)

// What a log remembers about a server that is followed (Follow.State) is found again by Open without reading more than the newest segment:
// each segment that is not the first begins with a group that repeats what was remembered last.

// Remembered returns the state of the newest follow record, nil where there is none.
func (l *Log) Remembered() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.follow)
}

// repeatState makes an empty segment that ends at a place remember on disk what the segments before it do, and returns where to go on.
// It must be there before other groups are: those need not remember anything, and then nobody would look further back.
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

// repeated returns the group that repeats in a new segment what the segments before it remember: nothing of the group that is written behind
// it, which a crash may take away alone. Its stamp is that of the last record before.
func repeated(state []byte, last Stamp) []byte {
	if len(state) == 0 {
		return nil
	}
	note := appendFollow(nil, &Follow{State: state}, nil)
	b := appendFrameHead(nil, last, len(note))
	b = append(append(b, note...), endMark)
	return appendCommit(b, 0, last, 1)
}

// findState looks for what a log that is being opened remembers. The newest segment may have been begun by a process that ended before
// it wrote anything to it; then the one before has it.
func (l *Log) findState(found []byte, newest uint64, empty bool) error {
	l.follow = found
	if !empty || newest == 1 {
		return nil
	}
	nums, err := listSegments(l.fs, l.dir)
	i := slices.Index(nums, newest)
	if err != nil || i < 1 {
		return err
	}
	l.follow, err = segmentState(l.fs, l.segmentPath(nums[i-1]))
	return err
}

// segmentState returns the state that an older segment ends with. Damage is for those to complain about who need its records.
func segmentState(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.OpenFile(path, readOnly, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head, err := readHeader(f)
	if err != nil {
		return nil, nil
	}
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	s := scanner{win: window{f: f}, path: path, head: head, off: headerSize, keeps: true}
	for err == nil {
		err = s.next(size)
	}
	var torn *tornError
	var damage *DamageError
	if !errors.Is(err, io.EOF) && !errors.As(err, &torn) && !errors.As(err, &damage) {
		return nil, err
	}
	return s.state, nil
}
