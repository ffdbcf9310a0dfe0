package ulog

import (
	"fmt"

	"gotycoon/internal/vfs"
)

// Files lists the files of a log that need not be open: those in the directory that begin with a segment header, in the order of
// their names. What it says about the newest one is behind while a process writes it.
func Files(fs vfs.FS, dir string) ([]FileInfo, error) {
	names, err := fs.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list update log: %w", err)
	}
	var files []FileInfo
	for _, name := range names {
		path := dir + "/" + name
		if head, ok := headerAt(fs, path); ok {
			files = append(files, FileInfo{path, head.size, head.last})
		}
	}
	return files, nil
}

// headerAt returns the segment header a file begins with.
func headerAt(fs vfs.FS, path string) (header, bool) {
	f, err := fs.OpenFile(path, readOnly, 0)
	if err != nil {
		return header{}, false
	}
	defer f.Close()
	h, err := readHeader(f)
	return h, err == nil
}
