package vfs

import (
	"errors"
	"os"
	"time"
)

// lockPoll is the time between two attempts to take a lock: the system offers no wait with a time
// limit.
const lockPoll = 20 * time.Millisecond

var errForeignFile = errors.New("file was not opened by this file system")

// OS is the operating system's file system.
type OS struct{}

// OpenFile implements FS.
func (OS) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &osFile{f}, nil
}

// MkdirAll implements FS.
func (OS) MkdirAll(name string, perm os.FileMode) error { return os.MkdirAll(name, perm) }

// ReadDir implements FS.
func (OS) ReadDir(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Stat implements FS.
func (OS) Stat(name string) (os.FileInfo, error) { return os.Stat(name) }

// Rename implements FS.
func (OS) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// SyncDir implements FS.
func (OS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Lock implements FS. The lock excludes every process that uses fcntl locks, and other files open
// in this one.
func (OS) Lock(f File, wait time.Duration) error {
	of, ok := f.(*osFile)
	if !ok {
		return errForeignFile
	}
	end := time.Now().Add(wait)
	for {
		err := tryLock(of.File)
		if !errors.Is(err, ErrLocked) || !time.Now().Before(end) {
			return err
		}
		time.Sleep(lockPoll) //lint:sleep the system tells nobody when a lock with a time limit is free
	}
}

// osFile is an open file of the operating system.
type osFile struct{ *os.File }

// Sync implements File.
func (f *osFile) Sync() error { return syncData(f.File) }

// StartSync implements Starter.
func (f *osFile) StartSync() error { return startSync(f.File) }

// Size implements File.
func (f *osFile) Size() (int64, error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}
