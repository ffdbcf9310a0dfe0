package filestore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
)

var (
	// ErrKyotoCabinet is returned for a file or directory that the original server wrote.
	ErrKyotoCabinet = errors.New("this is a Kyoto Cabinet database, which is left untouched: write its records, with their " +
		"expiration times, into a dump with the original's tool, `kttimedmgr dump FILE DUMP`, and load them into a new file " +
		"with `kttimedmgr load NEWFILE DUMP` of this server (docs/migrating.md)")
	// ErrInUse is returned when another process has the file open.
	ErrInUse = errors.New("another process has the file open: a server, or a tool; 'fuser FILE' shows which. End it first, or ask the server instead")
)

const (
	kyotoMagic = "KC\n" // first bytes of a Kyoto Cabinet file

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

func openBolt(path string, o Options) (*bolt.DB, os.FileInfo, error) {
	wait := lockWait
	if o.TryLock {
		wait = noWait
	}
	b := boltOptions()
	b.Timeout, b.ReadOnly = wait, o.ReadOnly
	file, info, err := openCurrent(path, b)
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, nil, ErrInUse
	}
	return file, info, err
}

// boltOptions are the options with which bbolt opens every file of a server.
//
// bbolt has two lists of free pages. The array gives out the first pages of the file that are free,
// so the free pages behind them stay together. The map takes a page out of a gap of any size: soon
// no gap is left for the filter of a run or for the list itself, which each commit writes anew in
// one piece, and each commit makes the file larger, and by that the next list. With the map, a file
// of a million records grew to twice its records by three million updates, with 1,700 bytes written
// for each at last; with the array it takes 1.54 times its records, and an update 910 bytes.
//
// The price of the array is a walk through the list for each value of several pages. With values of
// 1 to 14 KB in 1.5 GB the two lists were equally fast.
func boltOptions() bolt.Options {
	return bolt.Options{
		FreelistType:    bolt.FreelistArrayType,
		InitialMmapSize: int(mapAtLeast()),
		NoStatistics:    true,
	}
}

// openCurrent opens a file with bbolt and makes sure that the lock is that of the file that path
// names. While bbolt waits for the lock, its holder may put another file in place; what would then
// be written to the old file, nobody would see again.
func openCurrent(path string, o bolt.Options) (*bolt.DB, os.FileInfo, error) {
	for {
		var f *os.File
		o.OpenFile = func(name string, flag int, perm os.FileMode) (file *os.File, err error) {
			file, err = os.OpenFile(name, flag&^os.O_CREATE, perm) // bbolt would make a file
			f = file
			return file, err
		}
		db, err := bolt.Open(path, 0o644, &o)
		if err != nil {
			return nil, nil, err
		}
		if Current(f, path) {
			info, err := f.Stat()
			if err != nil {
				return nil, nil, errors.Join(err, db.Close())
			}
			return db, info, nil
		}
		if err := db.Close(); err != nil {
			return nil, nil, err
		}
	}
}

// OpenOffline opens a database file that no server may have open until the caller closes the
// result. exclusive keeps everybody else out; otherwise others may read. The lock is bbolt's. The
// error is ErrInUse when another process keeps its lock for ten seconds, or, with tryLock, at once.
func OpenOffline(path string, exclusive, tryLock bool) (*os.File, error) {
	if err := identify(path); err != nil {
		return nil, err
	}
	end := time.Now().Add(lockWait)
	if tryLock {
		end = time.Now()
	}
	for {
		f, err := openLocked(path, exclusive)
		if f != nil || err != nil {
			return f, err
		}
		if !time.Now().Before(end) {
			return nil, ErrInUse
		}
		time.Sleep(noWait) //lint:sleep nothing tells when the lock is free
	}
}

// openLocked opens and locks a file. It returns nil when another process has the lock, or when the
// file was replaced by a newer one while it was being opened.
func openLocked(path string, exclusive bool) (*os.File, error) {
	flag, how := os.O_RDONLY, unix.LOCK_SH
	if exclusive {
		flag, how = os.O_RDWR, unix.LOCK_EX
	}
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, err
	}
	if unix.Flock(int(f.Fd()), how|unix.LOCK_NB) == nil && Current(f, path) {
		return f, nil
	}
	return nil, f.Close()
}

// Current reports whether an open file still is the file that path names. A process that waited for
// the lock of a file which was replaced meanwhile holds the lock of a file that nobody will see
// again.
func Current(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(mine, named)
}
