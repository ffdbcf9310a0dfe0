package ulog

import (
	"errors"
	"fmt"
	"os"
)

// FileInfo describes a file of a log.
type FileInfo struct {
	Path string // directory as given to Open, slash, name
	Size int64  // in bytes, by the header
	Last Stamp  // largest stamp, by the header
}

// Files lists the files in the directory that begin with a segment header, in the order of their names. As with the original
// the name does not matter. For the segment being written it tells what is written, header or not.
func (l *Log) Files() ([]FileInfo, error) {
	l.mu.Lock()
	current := l.written
	l.mu.Unlock()
	names, err := l.fs.ReadDir(l.dir)
	if err != nil {
		return nil, fmt.Errorf("list update log: %w", err)
	}
	var files []FileInfo
	for _, name := range names {
		head := header{current.off, current.last}
		if name != segmentName(current.seg) {
			var ok bool
			if head, ok = headerAt(l.fs, l.dir+"/"+name); !ok {
				continue
			}
		}
		files = append(files, FileInfo{l.dir + "/" + name, head.size, head.last})
	}
	return files, nil
}

// RemoveFiles removes the files that Files lists and that hold nothing newer than upTo, but for the last one in the order of
// names and the segment being written. Readers that have one open go on reading it.
func (l *Log) RemoveFiles(upTo Stamp) error {
	files, err := l.Files()
	if err != nil || len(files) < 2 {
		return err
	}
	l.mu.Lock()
	current := l.dir + "/" + segmentName(l.written.seg)
	l.mu.Unlock()
	removed := false
	for _, f := range files[:len(files)-1] {
		if f.Last > upTo || f.Path == current {
			continue
		}
		if err := l.fs.Remove(f.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove update log file: %w", err)
		}
		removed = true
	}
	if !removed {
		return nil
	}
	return l.fs.SyncDir(l.dir)
}

// BeginSegment has the next group written to a new segment, so that RemoveFiles can remove the present one. It does nothing while
// that is small.
func (l *Log) BeginSegment() {
	const small = 256 << 10
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written.off >= small {
		l.next.Store(true)
	}
}
