package vfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WriteFileAtomic puts a file with the given content in place of name. After a crash at any moment name holds
// either the old or the new content, and after a return without error the new one. The content is written to
// name with ".tmp" added first, so one name must not be written by two callers at a time.
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
