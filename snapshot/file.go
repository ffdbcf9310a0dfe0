package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// Source is a database at an instant.
type Source interface {
	Stamp() ulog.Stamp
	Count() int64
	Size() int64
	Scan(visit func(key, value []byte) error) error
}

// Options for writing snapshots.
type Options struct {
	FS         vfs.FS // nil means vfs.OS
	Dir        string // directory of the snapshots
	Compressor Compressor
	Pause      func() error // called before each record; an error ends the snapshot; may be nil
}

const (
	extension = ".ktss"
	tmpSuffix = ".tmp"

	// syncEvery is how many bytes are written between two syncs. With a single sync at the end, the
	// disk would write the whole snapshot at once, and the update log would wait for it.
	syncEvery = 8 << 20
)

// Name returns the file name of a database's snapshot.
func Name(index int) string { return fmt.Sprintf("%08d%s", index, extension) }

// Write replaces the snapshot of a database by a new one. It writes a file with ".tmp" behind its
// name, syncs the file and renames it. So after a crash the name stands for the old snapshot or the
// new one, and never for a part. Once Write has returned without an error, the name stands for the
// new one even after a power cut.
func (o Options) Write(index int, from Source) error {
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	path := filepath.Join(o.Dir, Name(index))
	tmp := path + tmpSuffix
	err := o.writeFile(tmp, from)
	if err == nil {
		err = o.FS.Rename(tmp, path)
	}
	if err != nil {
		return fmt.Errorf("write the snapshot %s: %w", path, errors.Join(err, o.removeIfThere(tmp)))
	}
	if err := o.FS.SyncDir(o.Dir); err != nil {
		return fmt.Errorf("write the snapshot %s: %w", path, err)
	}
	return nil
}

func (o Options) removeIfThere(path string) error {
	if err := o.FS.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (o Options) writeFile(path string, from Source) error {
	f, err := o.FS.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	err = o.writeAll(&appender{f: f}, from)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (o Options) writeAll(to *appender, from Source) error {
	w, err := NewWriter(to, Header{o.Compressor, from.Stamp(), from.Count(), from.Size()})
	if err != nil {
		return err
	}
	err = from.Scan(func(key, value []byte) error {
		if o.Pause != nil {
			if err := o.Pause(); err != nil {
				return err
			}
		}
		return w.Add(key, value)
	})
	if err != nil {
		return err
	}
	return w.Close()
}

// appender writes to the end of a file, and syncs the file after every syncEvery bytes.
type appender struct {
	f      vfs.File
	n      int64
	synced int64
}

// Write appends to the file.
func (a *appender) Write(p []byte) (int, error) {
	n, err := a.f.WriteAt(p, a.n)
	a.n += int64(n)
	if err == nil && a.n-a.synced >= syncEvery {
		a.synced = a.n
		err = a.f.Sync()
	}
	return n, err
}
