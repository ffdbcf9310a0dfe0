package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// MakeDir creates a directory with its parents, and makes the names of all of them survive a power cut: a directory whose parent was not
// synced is lost with everything in it, however often that is synced later.
//
// Every parent up to the root is synced, not only the new ones: a process that was killed between the two steps may have made some of
// them. A parent that this user may not read was made by somebody else, and so were those above it; one whose file system cannot
// sync directories cannot be helped.
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
