package crashfs

import "gotycoon/internal/vfs"

// An inode is a file or a directory without its name.
type inode struct {
	dir *dir // of a directory; nil for a file

	synced   []byte // content at the last sync
	unsynced []op   // changes since the last sync, in order
}

// An op is one change of a file: a write at off, or with truncate a new size off.
type op struct {
	truncate bool
	off      int64
	data     []byte
}

// apply makes the whole change.
func (o *op) apply(content []byte) []byte {
	if o.truncate {
		return resize(content, o.off)
	}
	return patch(content, o.off, o.data)
}

func patch(content []byte, off int64, data []byte) []byte {
	if end := off + int64(len(data)); end > int64(len(content)) {
		content = resize(content, end)
	}
	copy(content[off:], data)
	return content
}

func resize(content []byte, size int64) []byte {
	if size <= int64(len(content)) {
		return content[:size]
	}
	return append(content, make([]byte, size-int64(len(content)))...)
}

// A file is an open file. Reading and Close work on the real file, Close also without power.
type file struct {
	vfs.File
	fs   *FS
	node *inode
}

// WriteAt implements vfs.File.
func (f *file) WriteAt(b []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.powerLocked(); err != nil {
		return 0, err
	}
	n, err := f.File.WriteAt(b, off)
	if err != nil {
		return n, err
	}
	f.node.unsynced = append(f.node.unsynced, op{off: off, data: append([]byte(nil), b...)})
	if err := f.fs.changeLocked(); err != nil {
		return 0, err
	}
	return n, nil
}

// Truncate implements vfs.File.
func (f *file) Truncate(size int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.powerLocked(); err != nil {
		return err
	}
	if err := f.File.Truncate(size); err != nil {
		return err
	}
	f.node.unsynced = append(f.node.unsynced, op{truncate: true, off: size})
	return f.fs.changeLocked()
}

// Sync implements vfs.File. The real file is not synced.
func (f *file) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.powerLocked() != nil || f.fs.changeLocked() != nil {
		return ErrPowerCut
	}
	for i := range f.node.unsynced {
		f.node.synced = f.node.unsynced[i].apply(f.node.synced)
	}
	f.node.unsynced = nil
	return nil
}
