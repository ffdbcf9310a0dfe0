package vfs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// ReadFile returns the content of a file.
func ReadFile(fs FS, name string) ([]byte, error) {
	f, err := fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	return data, errors.Join(err, f.Close())
}

// RemoveDir removes a directory and the files in it, in the order of their names. It goes no deeper.
func RemoveDir(fs FS, dir string) error {
	names, err := fs.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := fs.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := fs.Remove(dir); err != nil {
		return err
	}
	return fs.SyncDir(filepath.Dir(dir))
}
