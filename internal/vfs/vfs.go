// Package vfs is what the storage packages need of a file system. It is small, so that tests can
// put a file system of their own in its place: one that forgets what was not synced (crashfs), or
// one that fails on command (faultfs).
package vfs

import (
	"errors"
	"io"
	"os"
	"time"
)

// ErrLocked is returned by FS.Lock when another open file keeps the lock for longer than the caller
// would wait.
var ErrLocked = errors.New("file is locked by another process")

// A File is an open file. It may be used by many goroutines.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync returns when everything written before the call survives a power cut, the size included.
	// An error is final: what the file holds on disk is unknown, and a second Sync may succeed
	// without having written it.
	Sync() error
	// Truncate sets the size in bytes.
	Truncate(size int64) error
	// Size returns the size in bytes.
	Size() (int64, error)
}

// A Starter is a File that can begin early with the work of the next Sync.
type Starter interface {
	// StartSync has the disk begin with what was written to the file so far, and does not wait for
	// the disk. StartSync promises nothing about what survives a power cut. An error is as final as
	// that of Sync.
	StartSync() error
}

// An FS opens and names files. Creating, renaming and removing names survives a power cut after
// SyncDir.
type FS interface {
	// OpenFile opens a file as os.OpenFile does.
	OpenFile(name string, flag int, perm os.FileMode) (File, error)
	// MkdirAll creates a directory and its parents. An existing directory is no error.
	MkdirAll(name string, perm os.FileMode) error
	// ReadDir returns the names in a directory, without the path, sorted.
	ReadDir(name string) ([]string, error)
	// Stat describes the file a name leads to.
	Stat(name string) (os.FileInfo, error)
	// Rename gives a file another name, in place of a file that has it.
	Rename(oldname, newname string) error
	// Remove removes a name. Files that are open stay usable.
	Remove(name string) error
	// SyncDir makes the names of a directory survive a power cut.
	SyncDir(name string) error
	// Lock takes the exclusive advisory lock of an open file, held until the file is closed. It
	// waits as long as wait for another holder, then returns ErrLocked.
	Lock(f File, wait time.Duration) error
}
