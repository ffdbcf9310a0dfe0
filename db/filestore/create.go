package filestore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

var (
	// ErrKyotoCabinet is returned for a file or directory that the original server wrote.
	ErrKyotoCabinet = errors.New("this is a Kyoto Cabinet database, which is left untouched: write its records, with their " +
		"expiration times, into a dump with the original's tool, `kttimedmgr dump FILE DUMP`, and load them into a new file " +
		"with `kttimedmgr load NEWFILE DUMP` of this server (docs/migrating.md)")
	// ErrInUse is returned when another process has the file open.
	ErrInUse = errors.New("another process has the file open")

	errNotOurs = errors.New("the file is not a database of this server; it is left untouched")
)

const (
	kyotoMagic = "KC\n" // first bytes of a Kyoto Cabinet file

	// mapSize is reserved address space, not memory. While the file fits in it, a checkpoint never
	// has to wait for readers in order to map the file anew.
	mapSize = 64 << 30

	lockWait = 10 * time.Second
	noWait   = 50 * time.Millisecond // the shortest time in which bbolt tries more than once
)

// identify returns an error that says what path is when it is not a database file that may be
// opened. The error is os.ErrNotExist where the file has to be made.
func identify(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		if _, err := os.Stat(filepath.Join(path, "__KCDIR__")); err == nil {
			return ErrKyotoCabinet
		}
		return fmt.Errorf("%s is a directory; databases of this server are single files", path)
	}
	if info.Size() == 0 { // touched by the user; nothing to lose
		return os.ErrNotExist
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, len(kyotoMagic))
	if _, err := io.ReadFull(f, head); err != nil {
		return errNotOurs // shorter than any database
	}
	if bytes.Equal(head, []byte(kyotoMagic)) {
		return ErrKyotoCabinet
	}
	return nil
}

// create makes an empty database beside path and renames it into place, so that no crash leaves
// half a file under the name.
func create(path string, m Meta) error {
	fresh := path + ".new"
	if err := removeIfThere(fresh); err != nil {
		return err
	}
	file, err := bolt.Open(fresh, 0o644, &bolt.Options{Timeout: noWait})
	if err != nil {
		return errors.Join(fmt.Errorf("create %s: %w", path, err), removeIfThere(fresh))
	}
	err = file.Update(func(tx *bolt.Tx) error {
		if _, err := tx.CreateBucket([]byte(DataBucket)); err != nil {
			return err
		}
		return writeMeta(tx, m)
	})
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(fmt.Errorf("create %s: %w", path, err), os.Remove(fresh))
	}
	if err := os.Rename(fresh, path); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return syncDir(filepath.Dir(path))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func openBolt(path string, o Options) (*bolt.DB, error) {
	wait := lockWait
	if o.TryLock {
		wait = noWait
	}
	file, err := openCurrent(path, bolt.Options{
		Timeout:         wait,
		ReadOnly:        o.ReadOnly,
		FreelistType:    bolt.FreelistMapType,
		InitialMmapSize: int(min(int64(mapSize), math.MaxInt/4)), // for addresses of 32 bits
		NoStatistics:    true,
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, ErrInUse
	}
	return file, err
}

// Reset replaces the database at path, which must be one of ours and open nowhere else, by an empty
// one. The new database has another identity, so that no log has anything to add to it. A crash
// leaves either the old file or the new one.
func Reset(path string, o Options) error {
	old, err := Open(path, o)
	if err != nil {
		return err
	}
	was := old.Meta()
	was.Outlive()
	err = create(path, Meta{Format: formatVersion, ID: NewID(), Clean: true, Persistent: o.Persistent, Summed: true, LWW: was.LWW, Newest: was.Newest})
	return errors.Join(err, old.Abandon())
}
