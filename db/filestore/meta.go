package filestore

import (
	"crypto/rand"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"gotycoon/ulog"
)

// The file has two buckets. "data" holds the records under the key 0x01 ‖ key, so that the empty key works and
// the order is kept; "meta" holds one entry, "meta", the JSON text of a Meta. With Meta.LWW there is a third one, see Entry.
const (
	dataBucket = "data"
	metaBucket = "meta"
	metaKey    = "meta"
	keyPrefix  = 0x01

	// MaxKeySize is the longest key in bytes that the file format can hold.
	MaxKeySize = bolt.MaxKeySize - 1

	formatVersion = 1
)

// Meta is what a database file knows about itself. It is replaced in the same transaction as the data it
// describes, so the two never disagree.
type Meta struct {
	Format      int        // version of the file's layout
	ID          ID         // identity of the database; a copy of the file has the same
	Epoch       uint64     // grows whenever copies made before must be told from the file itself; see Copied
	Stamp       ulog.Stamp // every update of the log up to here is in the file
	LogID       ID         // the log that Stamp belongs to
	LogDir      string     // where that log was, for messages only
	DBID        uint16     // index of the database in that log
	Clean       bool       // closed with everything in the file
	Held        bool       `json:",omitempty"` // a command works on the file (Hold): a copy made meanwhile is whole at Stamp
	Persistent  bool       // created with ktopts=p: values have no expiration prefix
	Checkpoints uint64     // number of checkpoints so far
	Merging     []byte     // a checkpoint is in the file up to this key; nil: none is half done
	MergeEpoch  uint64     // Epoch when Merging was written
	Count       int64      // records in the file
	Bytes       int64      // their key and value bytes
	Summed      bool       `json:",omitempty"` // Sum counts; not in files from before there was one
	Sum         uint64     `json:",omitempty"` // checksum of the records, see RecordSum
	LWW         bool       `json:",omitempty"` // versions are kept, see Version
	Base        ulog.Stamp `json:",omitempty"` // version of records without one, from before versions were kept; 0: there are none
	Newest      ulog.Stamp `json:",omitempty"` // no version is newer than this, or than Stamp
	ClearedAt   ulog.Stamp `json:",omitempty"` // version of the last clear
	ClearedBy   uint16     `json:",omitempty"`
	Removals    int64      `json:",omitempty"`         // how many are remembered in the file
	Floor       ulog.Stamp `json:",omitempty"`         // newest removal that was forgotten
	Position    []byte     `json:"Follow,omitempty"`   // how far a master was followed, see ulog.Position and SetPosition
	PositionAt  ulog.Stamp `json:"FollowAt,omitempty"` // stamp of the note in the log that Follow is from; 0: unknown, of a version that had no such field
	TakenFrom   ID         `json:",omitzero"`          // the shared log that the file belonged to last, before LogID
	Taken       ulog.Stamp `json:",omitempty"`         // every update of that log up to here is in the file
}

// Copied tells whether the file is a backup that no server has opened yet: it names a log, but has not been a file of a
// server that writes to it. It is what it was at Stamp. A server opens it as it is; kttimedmgr recover brings in what
// that log has after the stamp, up to any point.
func (m *Meta) Copied() bool { return m.Epoch == 0 && m.LogID != ID{} }

// Outlive keeps in mind how new versions are, before Stamp becomes one of another log.
func (m *Meta) Outlive() {
	if m.LWW {
		m.Newest = max(m.Newest, m.Stamp)
	}
}

// progress returns how far the checkpoint under way is. What an earlier process left half done is no progress of this
// one's: its checkpoint begins anew.
func (m *Meta) progress() []byte {
	if m.MergeEpoch != m.Epoch {
		return nil
	}
	return m.Merging
}

// ID is a random identity.
type ID [16]byte

// NewID returns a fresh random identity.
func NewID() ID {
	var id ID
	_, _ = rand.Read(id[:]) // documented never to fail
	return id
}

// String returns the identity in hexadecimal.
func (id ID) String() string { return fmt.Sprintf("%x", id[:]) }

func readMeta(tx *bolt.Tx) (Meta, error) {
	b := tx.Bucket([]byte(metaBucket))
	if b == nil || tx.Bucket([]byte(dataBucket)) == nil {
		return Meta{}, errNotOurs
	}
	m, err := decodeMeta(b.Get([]byte(metaKey)))
	if err != nil {
		return m, err
	}
	if m.LWW && tx.Bucket([]byte(versionBucket)) == nil {
		return m, errors.New("the versions of the records are missing")
	}
	if m.Format != formatVersion {
		return m, fmt.Errorf("the file has format %d, this program knows format %d", m.Format, formatVersion)
	}
	return m, nil
}

func writeMeta(tx *bolt.Tx, m Meta) error {
	text, err := encodeMeta(m)
	if err != nil {
		return err
	}
	if m.LWW {
		if _, err := tx.CreateBucketIfNotExists([]byte(versionBucket)); err != nil {
			return err
		}
	}
	b, err := tx.CreateBucketIfNotExists([]byte(metaBucket))
	if err != nil {
		return err
	}
	return b.Put([]byte(metaKey), text)
}

// appendBoltKey appends the key under which the file keeps a record.
func appendBoltKey(dst, key []byte) []byte {
	return append(append(dst, keyPrefix), key...)
}
