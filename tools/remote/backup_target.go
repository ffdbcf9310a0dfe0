package remote

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"gotycoon/client"
	"gotycoon/db/filestore"
	"gotycoon/db/rebuild"
	"gotycoon/internal/vfs"
	"gotycoon/snapshot"
	"gotycoon/ulog"
)

// written describes a completed backup.
type written struct {
	size   int64
	digest [sha256.Size]byte
}

// streamTarget writes a snapshot to a stream.
type streamTarget struct {
	out      io.Writer
	compress snapshot.Compressor

	w      *snapshot.Writer
	digest hash.Hash
	size   int64
}

// Write implements io.Writer. It hashes and counts the bytes that it writes to out.
func (t *streamTarget) Write(p []byte) (int, error) {
	n, err := t.out.Write(p)
	_, _ = t.digest.Write(p[:n]) // documented never to fail
	t.size += int64(n)
	return n, err
}

func (t *streamTarget) begin(info client.CopyInfo) (err error) {
	t.digest = sha256.New()
	t.w, err = snapshot.NewWriter(t, snapshot.Header{
		Compressor: t.compress, Stamp: ulog.Stamp(info.TS), Count: info.Count, Size: info.Size,
	})
	return err
}

func (t *streamTarget) put(key, value []byte) error { return t.w.Add(key, value) }

func (t *streamTarget) commit() (written, error) {
	err := t.w.Close()
	return written{t.size, [sha256.Size]byte(t.digest.Sum(nil))}, err
}

// discard does nothing. Bytes in a stream cannot be taken back; the exit code says that the backup
// failed.
func (t *streamTarget) discard() error { return nil }

// temporary is the suffix of a snapshot that is being written.
const temporary = ".tmp"

// snapshotTarget writes a snapshot into a temporary file, and renames the file when it is complete.
type snapshotTarget struct {
	streamTarget
	fs       vfs.FS
	path     string
	compress snapshot.Compressor

	f  vfs.File // nil: not open
	at int64
}

// begin opens the temporary file and locks it, so that no second backup writes to the same name. A
// file that a killed backup has left is overwritten.
func (t *snapshotTarget) begin(info client.CopyInfo) error {
	f, err := t.fs.OpenFile(t.path+temporary, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if err := t.fs.Lock(f, 0); err != nil {
		return errors.Join(fmt.Errorf("%s: another process writes it: %w", t.path+temporary, err), f.Close())
	}
	t.f = f
	if err := f.Truncate(0); err != nil {
		return err
	}
	t.streamTarget = streamTarget{out: (*appender)(t), compress: t.compress}
	return t.streamTarget.begin(info)
}

// appender writes at the end of a snapshotTarget's file.
type appender snapshotTarget

// Write appends to the file.
func (a *appender) Write(p []byte) (int, error) {
	n, err := a.f.WriteAt(p, a.at)
	a.at += int64(n)
	return n, err
}

func (t *snapshotTarget) commit() (written, error) {
	w, err := t.streamTarget.commit()
	if err == nil {
		err = t.f.Sync()
	}
	if err == nil {
		err = t.fs.Rename(t.path+temporary, t.path)
	}
	if err != nil {
		return w, err
	}
	err = errors.Join(forgetDigest(t.fs, t.path), t.fs.SyncDir(filepath.Dir(t.path)), t.f.Close())
	t.f = nil
	if err == nil {
		err = writeDigest(t.fs, t.path, w)
	}
	return w, err
}

func (t *snapshotTarget) discard() error {
	if t.f == nil {
		return nil
	}
	// Remove while the lock is held: afterwards the file could be the file of another backup.
	err := t.fs.Remove(t.path + temporary)
	return errors.Join(err, t.f.Close())
}

// databaseTarget writes a database file that a server can open. The file's description has the
// position in the server's log, from which kttimedmgr recover brings in later updates.
type databaseTarget struct {
	fs   vfs.FS
	path string

	info client.CopyInfo
	old  *rebuild.File // the file that is replaced, locked; nil: none
	b    *rebuild.Builder
}

// begin opens and locks the file that will be replaced. The file must be a database that no server
// has open.
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

// remember stores the version of a key that the server's database keeps.
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

// description is the header of the new file. It marks the file as a copy, see
// filestore.Meta.Copied.
func (t *databaseTarget) description() filestore.Meta {
	return filestore.Meta{
		ID: filestore.NewID(), Clean: true, Persistent: t.info.Persistent,
		Stamp: ulog.Stamp(t.info.TS), LogID: filestore.ID(t.info.LogID), DBID: t.info.DB,
		LWW: t.info.Versioned, ClearedAt: ulog.Stamp(t.info.ClearedAt), ClearedBy: t.info.ClearedBy, Floor: ulog.Stamp(t.info.Floor),
	}
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

// digestSuffix is appended to a backup's name to make the name of its checksum file.
const digestSuffix = ".sha256"

// writeDigest writes the checksum file in the format of sha256sum, so that "sha256sum -c" in the
// backup's directory checks the backup.
func writeDigest(fs vfs.FS, path string, w written) error {
	line := fmt.Sprintf("%x  %s\n", w.digest, filepath.Base(path))
	return vfs.WriteFileAtomic(fs, path+digestSuffix, []byte(line))
}

// forgetDigest removes the checksum file of a backup that has just been replaced. It is called
// after the replacement: if it came first and the new backup failed, the old backup would have lost
// its checksum.
func forgetDigest(fs vfs.FS, path string) error {
	if err := fs.Remove(path + digestSuffix); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// digestOf reads the size and the checksum of a file.
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
