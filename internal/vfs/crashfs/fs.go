// Package crashfs is a file system for tests that knows what a power cut would leave.
//
// It works in a real directory, the root. It remembers for every file what was last synced and what
// was written since, and for every directory which names were synced. Crash makes, in another
// directory, a state of the disk that a power cut may leave: everything that was synced, and any
// part of the rest.
//
// A directory is a name in its parent like any other: as long as the parent has not been synced, a
// power cut may take the directory with everything in it, however often the directory itself was
// synced. Only the root is always there.
package crashfs

import (
	"errors"
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gotycoon/internal/vfs"
)

// ErrPowerCut is returned by every call after the power cut.
var ErrPowerCut = errors.New("power cut")

// FS is a vfs.FS in a directory. All names must lie in that directory.
type FS struct {
	os   vfs.OS
	root string

	mu   sync.Mutex // guards the fields below, all inodes, and changes of real files
	top  *dir
	left int // changes until the power cut; 0 is never
	cut  bool
}

// A dir is a directory: its names as a power cut leaves them, as they are now, and the changes
// between the two.
type dir struct {
	synced  map[string]*inode
	current map[string]*inode
	pending []change
}

func newDir() *dir { return &dir{synced: map[string]*inode{}, current: map[string]*inode{}} }

// A change is one change of a directory: it takes away a name, gives one, or both.
type change struct {
	gone, name string
	file       *inode
}

func (d *dir) do(c change) {
	d.pending = append(d.pending, c)
	c.apply(d.current)
}

func (c change) apply(names map[string]*inode) {
	if c.gone != "" {
		delete(names, c.gone)
	}
	if c.name != "" {
		names[c.name] = c.file
	}
}

// New returns a file system in a directory. The content of the directory counts as synced.
func New(root string) (*FS, error) {
	fs := &FS{root: filepath.Clean(root), top: newDir()}
	err := filepath.WalkDir(fs.root, func(path string, e iofs.DirEntry, err error) error {
		if err != nil || path == fs.root {
			return err
		}
		node := &inode{}
		if e.IsDir() {
			node.dir = newDir()
		} else {
			node.synced, err = os.ReadFile(path)
		}
		d := fs.dirLocked(filepath.Dir(path)) // nobody else has fs yet
		d.synced[e.Name()], d.current[e.Name()] = node, node
		return err
	})
	return fs, err
}

// dirLocked returns the directory of a path, nil where there is none under the root.
func (fs *FS) dirLocked(path string) *dir {
	rel, err := filepath.Rel(fs.root, filepath.Clean(path))
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return nil
	}
	d := fs.top
	if rel == "." {
		return d
	}
	for name := range strings.SplitSeq(rel, "/") {
		node := d.current[name]
		if node == nil || node.dir == nil {
			return nil
		}
		d = node.dir
	}
	return d
}

// Cut cuts the power now.
func (fs *FS) Cut() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.cut = true
}

// CutAfter cuts the power at the n-th change from now: a write, sync, truncation, creation (of a
// directory, too), renaming or removal. That change may or may not reach the disk.
func (fs *FS) CutAfter(n int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.left = n
}

// powerLocked returns an error after the power cut.
func (fs *FS) powerLocked() error {
	if fs.cut {
		return ErrPowerCut
	}
	return nil
}

// changeLocked counts a change that was made and returns an error if the power went with it.
func (fs *FS) changeLocked() error {
	if fs.left > 0 {
		if fs.left--; fs.left == 0 {
			fs.cut = true
		}
	}
	return fs.powerLocked()
}

// lookupLocked returns the directory of a file and the file, if it exists.
func (fs *FS) lookupLocked(name string) (*dir, *inode, error) {
	d := fs.dirLocked(filepath.Dir(filepath.Clean(name)))
	if d == nil {
		return nil, nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
	}
	return d, d.current[filepath.Base(name)], nil
}

// OpenFile implements vfs.FS.
func (fs *FS) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err := fs.powerLocked(); err != nil {
		return nil, err
	}
	d, node, err := fs.lookupLocked(name)
	if err != nil {
		return nil, err
	}
	f, err := fs.os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	if node == nil {
		node = &inode{}
		d.do(change{name: filepath.Base(name), file: node})
		err = fs.changeLocked()
	} else if flag&os.O_TRUNC != 0 {
		node.unsynced = append(node.unsynced, op{truncate: true})
		err = fs.changeLocked()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &file{f, fs, node}, nil
}

// MkdirAll implements vfs.FS.
func (fs *FS) MkdirAll(name string, perm os.FileMode) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.mkdirLocked(filepath.Clean(name), perm)
}

// mkdirLocked makes a directory, and before it its parents, one change after the other.
func (fs *FS) mkdirLocked(path string, perm os.FileMode) error {
	if err := fs.powerLocked(); err != nil {
		return err
	}
	if fs.dirLocked(path) != nil {
		return nil
	}
	if len(path) <= len(fs.root) {
		return &os.PathError{Op: "mkdir", Path: path, Err: os.ErrNotExist}
	}
	if err := fs.mkdirLocked(filepath.Dir(path), perm); err != nil {
		return err
	}
	if err := fs.os.MkdirAll(path, perm); err != nil {
		return err
	}
	fs.dirLocked(filepath.Dir(path)).do(change{name: filepath.Base(path), file: &inode{dir: newDir()}})
	return fs.changeLocked()
}

// ReadDir implements vfs.FS.
func (fs *FS) ReadDir(name string) ([]string, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err := fs.powerLocked(); err != nil {
		return nil, err
	}
	return fs.os.ReadDir(name)
}

// Stat implements vfs.FS.
func (fs *FS) Stat(name string) (os.FileInfo, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err := fs.powerLocked(); err != nil {
		return nil, err
	}
	return fs.os.Stat(name)
}

// Rename implements vfs.FS, inside one directory or between two.
func (fs *FS) Rename(oldname, newname string) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err := fs.powerLocked(); err != nil {
		return err
	}
	from, node, err := fs.lookupLocked(oldname)
	if err != nil {
		return err
	}
	to, _, err := fs.lookupLocked(newname)
	if err != nil {
		return err
	}
	if err := fs.os.Rename(oldname, newname); err != nil {
		return err
	}
	c := change{gone: filepath.Base(oldname), name: filepath.Base(newname), file: node}
	if from != to {
		to.do(change{name: c.name, file: node})
		c.name = ""
	}
	from.do(c)
	return fs.changeLocked()
}

// Remove implements vfs.FS.
func (fs *FS) Remove(name string) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err := fs.powerLocked(); err != nil {
		return err
	}
	d, _, err := fs.lookupLocked(name)
	if err != nil {
		return err
	}
	if err := fs.os.Remove(name); err != nil {
		return err
	}
	d.do(change{gone: filepath.Base(name)})
	return fs.changeLocked()
}

// SyncDir implements vfs.FS.
func (fs *FS) SyncDir(name string) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err := errors.Join(fs.powerLocked(), fs.changeLocked()); err != nil {
		return ErrPowerCut
	}
	d := fs.dirLocked(name)
	if d == nil {
		return nil // outside
	}
	d.synced, d.pending = maps.Clone(d.current), nil
	return nil
}

// Lock implements vfs.FS.
func (fs *FS) Lock(f vfs.File, wait time.Duration) error { return fs.os.Lock(f.(*file).File, wait) }
