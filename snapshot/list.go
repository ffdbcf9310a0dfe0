package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gotycoon/internal/vfs"
)

// File is a snapshot in a directory.
type File struct {
	Path   string
	Index  int // of the snapshot's database
	Header Header
	Err    error // why Header could not be read; a *DamageError if the file is damaged
}

// List returns the snapshots in a directory, in the order of their names. A snapshot's name begins
// with digits, the index of its database, and ends in .ktss, in upper or lower case.
func List(fs vfs.FS, dir string) ([]File, error) {
	names, err := fs.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, name := range names {
		index, ok := indexOf(name)
		if !ok {
			continue
		}
		f := File{Path: filepath.Join(dir, name), Index: index}
		f.Header, f.Err = headerOf(fs, f.Path)
		files = append(files, f)
	}
	return files, nil
}

// Oldest sorts snapshots by their time stamps, oldest first. Snapshots whose header cannot be read
// come last.
func Oldest(files []File) {
	slices.SortStableFunc(files, func(a, b File) int {
		switch {
		case (a.Err == nil) != (b.Err == nil):
			if a.Err == nil {
				return -1
			}
			return 1
		case a.Header.Stamp < b.Header.Stamp:
			return -1
		case a.Header.Stamp > b.Header.Stamp:
			return 1
		}
		return 0
	})
}

// indexOf returns the database index in the name of a snapshot; ok is false for other names.
func indexOf(name string) (index int, ok bool) {
	if !strings.EqualFold(filepath.Ext(name), extension) {
		return 0, false
	}
	digits := 0
	for digits < len(name) && '0' <= name[digits] && name[digits] <= '9' {
		digits++
	}
	if digits == 0 {
		return 0, false
	}
	index, err := strconv.Atoi(name[:digits])
	return index, err == nil // an index that is too large belongs to no database
}

func headerOf(fs vfs.FS, path string) (h Header, err error) {
	f, err := fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return Header{}, err
	}
	b := make([]byte, headerSize)
	n, err := f.ReadAt(b, 0)
	if n < headerSize {
		err = cut(err, ErrNoSnapshot)
	} else {
		h, err = parseHeader(b)
	}
	return h, errors.Join(nameFile(path, damaged(0, err)), f.Close())
}
