package filestore

import (
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

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

// openCurrent opens a file with bbolt and makes sure that the lock is that of the file that path
// names. While bbolt waits for the lock, its holder may put another file in place; what would then
// be written to the old file, nobody would see again.
func openCurrent(path string, o bolt.Options) (*bolt.DB, error) {
	for {
		var f *os.File
		o.OpenFile = func(name string, flag int, perm os.FileMode) (file *os.File, err error) {
			file, err = os.OpenFile(name, flag&^os.O_CREATE, perm) // bbolt would make a file
			f = file
			return file, err
		}
		db, err := bolt.Open(path, 0o644, &o)
		if err != nil || Current(f, path) {
			return db, err
		}
		if err := db.Close(); err != nil {
			return nil, err
		}
	}
}
