package filestore

import (
	"fmt"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// What programs need that make and check files without opening a Store, see db/rebuild: two buckets, and how their
// entries are formed.
const (
	DataBucket = dataBucket // bucket of the records
	MetaBucket = metaBucket // bucket of the description
	MetaKey    = metaKey    // key of the description in its bucket
	KeyPrefix  = keyPrefix  // byte in front of every record's key

	VersionBucket = versionBucket // bucket of what is remembered of keys, in files with Meta.LWW
	VersionPrefix = versionPrefix // byte in front of every key there
)

// AppendEntry appends an entry as the bucket "version" holds it.
func AppendEntry(dst []byte, e LastUpdate) []byte { return appendEntry(dst, e) }

// DecodeEntry is the reverse of AppendEntry; ok is false for what is no entry.
func DecodeEntry(b []byte) (e LastUpdate, ok bool) { return decodeEntry(b) }

// EncodeMeta returns a description as the file holds it.
func EncodeMeta(m Meta) ([]byte, error) {
	m.Format = formatVersion
	return encodeMeta(m)
}

// DecodeMeta is the reverse of EncodeMeta. The error says that the text is none, or is of another version.
func DecodeMeta(text []byte) (Meta, error) {
	m, err := decodeMeta(text)
	if err != nil {
		return m, err
	}
	if m.Format != formatVersion {
		return m, fmt.Errorf("the file has format %d, this program knows format %d", m.Format, formatVersion)
	}
	return m, nil
}

// OpenOffline opens the file of a database that no server may have open until the result is closed: exclusive keeps
// everybody else out, otherwise others may read. It takes the lock that bbolt takes. The error is ErrInUse when another process keeps its
// lock for ten seconds, or with tryLock at once.
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
		time.Sleep(noWait) //lint:sleep the system tells nobody when a lock with a time limit is free
	}
}

// openLocked opens and locks a file. It returns nil when it is locked, or has been replaced by a newer one meanwhile.
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

// Current tells whether an open file still is the one that path names. A process that has waited for the lock of a file which was
// replaced meanwhile holds one that nobody will see again.
func Current(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(mine, named)
}

// openCurrent opens a file with bbolt and makes sure that it has the lock of the file that path names. While it waits for the lock, the
// one who has it may put another file in place: what would be written to the old one, nobody would see again.
func openCurrent(path string, o bolt.Options) (*bolt.DB, error) {
	for {
		var f *os.File
		o.OpenFile = func(name string, flag int, perm os.FileMode) (file *os.File, err error) {
			file, err = os.OpenFile(name, flag&^os.O_CREATE, perm) // bbolt would make a file that is none of ours
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
