package vfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// MakeDir creates a directory with its parents, and makes the names of all of them survive a power
// cut. A directory whose parent was not synced is lost with everything in it, however often the
// directory itself is synced later.
//
// Every parent up to the root is synced, not only the new ones: a process that was killed between
// the two steps may have made some of them. A parent that this user may not read was made by
// somebody else, and so were the directories above it; MakeDir stops there. A file system that
// cannot sync directories is accepted as it is.
func MakeDir(fs FS, dir string, perm os.FileMode) error {
	if err := fs.MkdirAll(dir, perm); err != nil {
		return err
	}
	for path := filepath.Clean(dir); filepath.Dir(path) != path; {
		path = filepath.Dir(path)
		err := fs.SyncDir(path)
		if errors.Is(err, os.ErrPermission) {
			return nil
		}
		if err != nil && !errors.Is(err, syscall.EINVAL) {
			return err
		}
	}
	return nil
}

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

// RemoveDir removes a directory and the files in it, in the order of their names. It goes no
// deeper.
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

// WriteFileAtomic puts a file with the given content in place of name. After a crash at any moment
// name holds either the old or the new content, and after a return without error the new content.
// The content is first written to name with ".tmp" added, so two callers must not write one name at
// a time.
func WriteFileAtomic(fs FS, name string, data []byte) error {
	tmp := name + ".tmp"
	err := writeSynced(fs, tmp, data)
	if err == nil {
		err = fs.Rename(tmp, name)
	}
	if err != nil {
		_ = fs.Remove(tmp) // what is left is harmless and overwritten next time
		return err
	}
	return fs.SyncDir(filepath.Dir(name))
}

func writeSynced(fs FS, name string, data []byte) error {
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
