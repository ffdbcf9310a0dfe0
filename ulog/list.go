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
		if head, ok := headerAt(fs, dir, name); ok {
			files = append(files, FileInfo{dir + "/" + name, head.size, head.last})
		}
	}
	return files, nil
}
