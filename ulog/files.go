package ulog

import (
	"math"
	"slices"

	"gotycoon/internal/vfs"
)

// FileInfo describes a file of a log.
type FileInfo struct {
	Path string // directory as given to Open, slash, name
	Size int64  // in bytes, by the header
	Last Stamp  // largest stamp, by the header
}

// Files lists the files in the directory that begin with a segment header, in the order of their
// names. As with the original the name does not matter. For the segment being written it gives what
// is written, whatever the header says.
func (l *Log) Files() ([]FileInfo, error) {
	names, err := listFiles(l.fs, l.dir)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	// Read after the directory, so the headers of all older segments are final.
	current := l.written
	l.mu.Unlock()
	var files []FileInfo
	for _, name := range names {
		head := header{current.off, current.last}
		if name != segmentName(current.seg) {
			var ok bool
			if head, ok = headerAt(l.fs, l.dir, name); !ok {
				continue
			}
		}
		files = append(files, FileInfo{l.dir + "/" + name, head.size, head.last})
	}
	return files, nil
}

// Files lists the files of a log that need not be open: those in the directory that begin with a
// segment header, in the order of their names. The size and the stamp of the newest file lag while
// a process writes it.
func Files(fs vfs.FS, dir string) ([]FileInfo, error) {
	names, err := listFiles(fs, dir)
	if err != nil {
		return nil, err
	}
	var files []FileInfo
	for _, name := range names {
		if head, ok := headerAt(fs, dir, name); ok {
			files = append(files, FileInfo{dir + "/" + name, head.size, head.last})
		}
	}
	return files, nil
}

// older returns the files that may be removed when nobody needs them, the oldest first. The caller
// holds holds.removing.
func (l *Log) older(newest uint64) ([]FileInfo, error) {
	names, err := listFiles(l.fs, l.dir)
	if err != nil {
		return nil, err
	}
	var files []FileInfo
	const unknown = Stamp(math.MaxUint64)
	// Last stamp of the next undamaged segment: segments before it hold nothing newer.
	bound := unknown
	last := true
	for i := len(names) - 1; i >= 0; i-- {
		n, segment := parseSegmentName(names[i])
		if segment && n >= newest {
			last = false
			continue
		}
		head, ok := headerAt(l.fs, l.dir, names[i])
		switch {
		case ok && last: // the last name always stays
			last = false
			if segment {
				bound = head.last
			}
			continue
		case ok && segment:
			bound = head.last
		case !ok && (!segment || bound == unknown):
			continue
		case !ok:
			head.last = bound
		}
		files = append(files, FileInfo{l.dir + "/" + names[i], head.size, head.last})
	}
	slices.Reverse(files)
	return files, nil
}
