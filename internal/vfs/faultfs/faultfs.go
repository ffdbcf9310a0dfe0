// Package faultfs is a file system for tests that fails and hangs on command, and counts calls.
package faultfs

import (
	"os"
	"sync"
	"syscall"
	"time"

	"gotycoon/internal/vfs"
)

// FS passes everything on to another file system.
type FS struct {
	vfs.FS

	mu      sync.Mutex // guards the fields below
	write   fault
	sync    fault
	change  fault
	full    bool // space is limited
	space   int64
	onWrite func()
	onSync  func()
	starts  int
	start   error         // of StartSync
	hung    chan struct{} // changes wait until it is closed; nil: the disk answers
}

// A fault counts calls and fails one of them, and those after it.
type fault struct {
	calls int
	at    int // number of the first call to fail; 0 is none
	err   error
}

func (t *fault) fail(n int, err error) { t.at, t.err = t.calls+n, err }

func (t *fault) next() error {
	t.calls++
	if t.at == 0 || t.calls < t.at {
		return nil
	}
	return t.err
}

// New wraps a file system.
func New(base vfs.FS) *FS { return &FS{FS: base} }

// FailWrite makes the n-th write from now fail, and all after it. 1 is the next one.
func (fs *FS) FailWrite(n int, err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.write.fail(n, err)
}

// FailSync makes the n-th sync of a file from now fail, and all after it. 1 is the next one.
func (fs *FS) FailSync(n int, err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.sync.fail(n, err)
}

// FailChange makes the n-th change from now fail, and all after it: as if the process had died
// while the disk goes on. A change is a write, sync, truncation, creation, renaming or removal. 1
// is the next one.
func (fs *FS) FailChange(n int, err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.change.fail(n, err)
}

// Space limits the bytes written from now on. The write that exceeds them is cut short and returns
// ENOSPC.
func (fs *FS) Space(bytes int64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.full, fs.space = true, bytes
}

// OnWrite has f called at the beginning of every write; it may block.
func (fs *FS) OnWrite(f func()) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.onWrite = f
}

// OnSync has f called at the beginning of every sync of a file; it may block.
func (fs *FS) OnSync(f func()) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.onSync = f
}

// Hang has every change wait that begins from now on, until the disk goes on. Hang is called again
// only after that.
func (fs *FS) Hang() (goOn func()) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	hung := make(chan struct{})
	fs.hung = hung
	return sync.OnceFunc(func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		fs.hung = nil
		close(hung)
	})
}

// Writes returns how many writes were asked for.
func (fs *FS) Writes() int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.write.calls
}

// Syncs returns how many syncs of files were asked for.
func (fs *FS) Syncs() int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.sync.calls
}

// Starts returns the number of calls of StartSync so far.
func (fs *FS) Starts() int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.starts
}

// FailStart makes every StartSync from now on fail.
func (fs *FS) FailStart(err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.start = err
}

// OpenFile implements vfs.FS.
func (fs *FS) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	if flag&(os.O_CREATE|os.O_TRUNC) != 0 {
		if err := fs.changed(nil); err != nil {
			return nil, err
		}
	}
	f, err := fs.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &file{f, fs}, nil
}

// changed counts a change, of a kind with its own fault or not.
func (fs *FS) changed(kind *fault) error {
	fs.mu.Lock()
	for hung := fs.hung; hung != nil; hung = fs.hung {
		fs.mu.Unlock()
		<-hung
		fs.mu.Lock()
	}
	defer fs.mu.Unlock()
	err := fs.change.next()
	if kind != nil {
		if kerr := kind.next(); err == nil {
			err = kerr
		}
	}
	return err
}

// MkdirAll implements vfs.FS.
func (fs *FS) MkdirAll(name string, perm os.FileMode) error {
	if err := fs.changed(nil); err != nil {
		return err
	}
	return fs.FS.MkdirAll(name, perm)
}

// Rename implements vfs.FS.
func (fs *FS) Rename(oldname, newname string) error {
	if err := fs.changed(nil); err != nil {
		return err
	}
	return fs.FS.Rename(oldname, newname)
}

// Remove implements vfs.FS.
func (fs *FS) Remove(name string) error {
	if err := fs.changed(nil); err != nil {
		return err
	}
	return fs.FS.Remove(name)
}

// SyncDir implements vfs.FS.
func (fs *FS) SyncDir(name string) error {
	if err := fs.changed(nil); err != nil {
		return err
	}
	return fs.FS.SyncDir(name)
}

// Lock implements vfs.FS.
func (fs *FS) Lock(f vfs.File, wait time.Duration) error {
	return fs.FS.Lock(f.(*file).File, wait)
}

// allow returns how many of n bytes may be written, and the error that ends the write.
func (fs *FS) allow(n int) (int, error) {
	if err := fs.changed(&fs.write); err != nil {
		return 0, err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.full && int64(n) > fs.space {
		n, fs.space = int(fs.space), 0
		return n, syscall.ENOSPC
	}
	fs.space -= int64(n)
	return n, nil
}

// call calls a hook, which may block.
func (fs *FS) call(hook *func()) {
	fs.mu.Lock()
	f := *hook
	fs.mu.Unlock()
	if f != nil {
		f()
	}
}

type file struct {
	vfs.File
	fs *FS
}

// WriteAt implements vfs.File.
func (f *file) WriteAt(b []byte, off int64) (int, error) {
	f.fs.call(&f.fs.onWrite)
	n, fault := f.fs.allow(len(b))
	if n > 0 {
		if n, err := f.File.WriteAt(b[:n], off); err != nil {
			return n, err
		}
	}
	return n, fault
}

// Truncate implements vfs.File. What it cuts off is free again.
func (f *file) Truncate(size int64) error {
	if err := f.fs.changed(nil); err != nil {
		return err
	}
	before, err := f.Size()
	if err == nil {
		err = f.File.Truncate(size)
	}
	if err == nil {
		f.fs.mu.Lock()
		f.fs.space += max(0, before-size)
		f.fs.mu.Unlock()
	}
	return err
}

// Sync implements vfs.File.
func (f *file) Sync() error {
	f.fs.call(&f.fs.onSync)
	if err := f.fs.changed(&f.fs.sync); err != nil {
		return err
	}
	return f.File.Sync()
}

// StartSync implements vfs.Starter. It is counted, and begins nothing.
func (f *file) StartSync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.starts++
	return f.fs.start
}
