package remote

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"gotycoon/client"
	"gotycoon/db/filestore"
	"gotycoon/db/rebuild"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// databaseTarget writes a database file that a server opens. Its description has the time stamp and the log of the server,
// from where kttimedmgr recover goes on.
type databaseTarget struct {
	fs   vfs.FS
	path string

	info client.CopyInfo
	old  *rebuild.File // what is replaced, locked; nil: nothing
	b    *rebuild.Builder
}

// begin locks the file that is replaced: no server may have it open, and it must be a database.
func (t *databaseTarget) begin(info client.CopyInfo) (err error) {
	t.info = info
	if info.Decimal {
		return errors.New("a database that compares keys as numbers can only be backed up to a snapshot (.ktss)")
	}
	t.old, err = rebuild.Open(t.path, true, true)
	switch {
	case errors.Is(err, os.ErrNotExist):
		t.old = nil
	case errors.Is(err, filestore.ErrInUse):
		return fmt.Errorf("%s is in use: give a name that no server has open: %w", t.path, err)
	case err != nil:
		return err
	}
	t.b, err = rebuild.New(t.path, rebuild.Options{Replace: t.old != nil, FS: t.fs})
	return err
}

func (t *databaseTarget) put(key, value []byte) error {
	if t.info.Ascending {
		return t.b.Append(key, value)
	}
	return t.b.Set(key, value)
}

// remember takes what the server's database remembers of a key.
func (t *databaseTarget) remember(key []byte, v client.CopyVersion) error {
	return t.b.Remember(key, filestore.LastUpdate{Version: filestore.Version{Stamp: ulog.Stamp(v.Stamp), SID: v.SID}, Removed: v.Removed})
}

func (t *databaseTarget) commit() (written, error) {
	if err := t.b.Commit(t.description()); err != nil {
		return written{}, err
	}
	if err := forgetDigest(t.fs, t.path); err != nil {
		return written{}, err
	}
	w, err := digestOf(t.path)
	if err == nil {
		err = writeDigest(t.fs, t.path, w)
	}
	return w, errors.Join(err, t.closeOld())
}

// description tells a server that the file is a copy, see filestore.Meta.Copied.
func (t *databaseTarget) description() filestore.Meta {
	return filestore.Meta{
		ID: filestore.NewID(), Clean: true, Persistent: t.info.Persistent,
		Stamp: ulog.Stamp(t.info.TS), LogID: filestore.ID(t.info.LogID), DBID: t.info.DB,
		LWW: t.info.Versioned, ClearedAt: ulog.Stamp(t.info.ClearedAt), ClearedBy: t.info.ClearedBy, Floor: ulog.Stamp(t.info.Floor),
	}
}

// digestOf reads a file that has been written.
func digestOf(path string) (w written, err error) {
	f, err := os.Open(path)
	if err != nil {
		return w, err
	}
	defer f.Close()
	digest := sha256.New()
	w.size, err = io.Copy(digest, f)
	w.digest = [sha256.Size]byte(digest.Sum(nil))
	return w, err
}

func (t *databaseTarget) discard() error {
	var err error
	if t.b != nil {
		err = t.b.Discard()
	}
	return errors.Join(err, t.closeOld())
}

func (t *databaseTarget) closeOld() error {
	if t.old == nil {
		return nil
	}
	old := t.old
	t.old = nil
	return old.Close()
}
