package filestore

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"
	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/run"
	"gotycoon/ulog/update"
)

// The file has two buckets, others from the first merge on, with Meta.LWW, and while it has runs.
// Programs that make and check files without opening a Store (db/rebuild) use the names too.
//
//	bucket     key           value
//	data       0x01 ‖ key    value in stored form: the empty key works, and the order is kept
//	meta       meta          JSON text of a Meta, with a checksum, see EncodeMeta
//	version    0x02 ‖ key    an entry, see AppendEntry
//	packed     0x04 ‖ key    a block of records, of which key is the last one; see package run
//	runs       number        a bucket for each run, see package run
//
// The bucket data is called the tree of the file, packed records and tree together its bottom. A
// key has its record in one of the two, see bottom.go. An entry of a run hides the entries of older
// runs and the record of the bottom that have its key.
//
// The prefixes differ so that a salvage can tell records from versions in a page to which no other
// page leads any more.
const (
	DataBucket    = "data"
	MetaBucket    = "meta"
	MetaKey       = "meta"
	KeyPrefix     = 0x01
	VersionBucket = "version"
	VersionPrefix = 0x02

	// MaxKeySize is the longest key in bytes that the file format can hold.
	MaxKeySize = bolt.MaxKeySize - 1

	formatVersion = 1 // of a file with neither of the following
	formatRuns    = 2 // of a file with runs, which older programs do not know
	formatPacked  = 3 // of a file with packed records, or with runs of which a merge has dropped a part
)

// batchEntries is how many entries one transaction changes at most. Each may touch a page, which
// takes about 7 KiB of memory until the commit.
const batchEntries = 20_000

// Meta is the description of a database file: what the file knows about itself. It is replaced in
// the same transaction as the data it describes, so the two never disagree.
type Meta struct {
	Format int          // version of the file's layout
	ID     ID           // identity of the database; a copy of the file has the same
	Epoch  uint64       // grows whenever older copies must be told from the file; see Copied
	Stamp  update.Stamp // every update of the log up to here is in the file
	LogID  ID           // the log that Stamp belongs to
	LogDir string       // where that log was, for messages only
	DBID   uint16       // index of the database in that log
	Clean  bool         // closed with everything in the file

	// Held says that a command works on the file (Hold): a copy made meanwhile is whole at Stamp.
	Held bool `json:",omitempty"`

	Persistent  bool   // created with ktopts=p: values have no expiration prefix
	Checkpoints uint64 // number of checkpoints so far
	Merging     []byte // an older version stopped within a checkpoint, which is in the file up to this key
	MergeEpoch  uint64 // Epoch when Merging was written
	Count       int64  // records in the bottom
	Bytes       int64  // their key and value bytes
	Summed      bool   `json:",omitempty"` // Sum is valid; false in files older than the checksum
	Sum         uint64 `json:",omitempty"` // checksum of the bottom's records, see RecordSum

	// The runs up to MergeRun are being merged into the bottom. MergedTo is the last key that was,
	// maybe the empty one; nil: none yet. Runs and bottom together hold the same records at each
	// moment of a merge.
	MergeRun uint64 `json:",omitempty"`
	MergedTo []byte `json:",omitzero"`

	// A merge has packed what was small in the tree, and need not walk through the tree again.
	Packed bool `json:",omitempty"`

	LWW       bool         `json:",omitempty"` // versions are kept, see Version
	Base      update.Stamp `json:",omitempty"` // version of records without an entry; 0: there are none
	Newest    update.Stamp `json:",omitempty"` // no version is newer than max(Newest, Stamp)
	ClearedAt update.Stamp `json:",omitempty"` // version of the last clear
	ClearedBy uint16       `json:",omitempty"` // server id in the version of the last clear
	Removals  int64        `json:",omitempty"` // how many removals the file remembers
	Floor     update.Stamp `json:",omitempty"` // newest removal that was forgotten, see prune.go

	// Position says how far a master was followed, see ulog.Position and SetPosition. PositionAt is
	// the stamp of the note in the log from which Position was taken; 0: unknown, the file was last
	// written by a version without the field.
	Position   []byte       `json:"Follow,omitempty"`
	PositionAt update.Stamp `json:"FollowAt,omitempty"`

	TakenFrom ID           `json:",omitzero"`  // shared log that the file belonged to before
	Taken     update.Stamp `json:",omitempty"` // every update of that log up to here is in the file
}

// Copied reports whether the file is a backup that no server has opened yet: it names a log, but
// has not been a file of a server that writes to that log. The file is what the database was at
// Stamp. A server opens it as it is; kttimedmgr recover brings in what the log has after Stamp, up
// to any point.
func (m *Meta) Copied() bool { return m.Epoch == 0 && m.LogID != ID{} }

// Outlive keeps in Newest how new versions are, before Stamp becomes a stamp of another log.
func (m *Meta) Outlive() {
	if m.LWW {
		m.Newest = max(m.Newest, m.Stamp)
	}
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

var errNotOurs = errors.New("the file is not a database of this server; it is left untouched")

func readMeta(tx *bolt.Tx) (Meta, error) {
	b := tx.Bucket([]byte(MetaBucket))
	if b == nil || tx.Bucket([]byte(DataBucket)) == nil {
		return Meta{}, errNotOurs
	}
	m, err := decodeMeta(b.Get([]byte(MetaKey)))
	if err != nil {
		return m, err
	}
	if m.LWW && tx.Bucket([]byte(VersionBucket)) == nil {
		return m, errors.New("the versions of the records are missing")
	}
	return m, m.checkFormat()
}

// metaOf reads the description of an open file.
func metaOf(file *bolt.DB) (m Meta, err error) {
	err = file.View(func(tx *bolt.Tx) error {
		m, err = readMeta(tx)
		return err
	})
	return m, err
}

// checkFormat returns an error for a file of a format that this program does not know.
func (m *Meta) checkFormat() error {
	if m.Format > formatPacked {
		return fmt.Errorf("the file has format %d, this program knows the formats %d to %d: a newer version has written it. Start that version, "+
			"or have its 'kttimedmgr compact' make a file that every version opens", m.Format, formatVersion, formatPacked)
	}
	if m.Format < formatVersion {
		return fmt.Errorf("the file has format %d, this program knows the formats %d to %d", m.Format, formatVersion, formatPacked)
	}
	return nil
}

func writeMeta(tx *bolt.Tx, m Meta) error {
	switch {
	case m.MergedTo != nil || run.AnyPacked(tx):
		m.Format = formatPacked
	case run.Any(tx):
		m.Format = formatRuns
	default:
		m.Format = formatVersion
	}
	text, err := encodeMeta(m)
	if err != nil {
		return err
	}
	if m.LWW {
		if _, err := tx.CreateBucketIfNotExists([]byte(VersionBucket)); err != nil {
			return err
		}
	}
	b, err := tx.CreateBucketIfNotExists([]byte(MetaBucket))
	if err != nil {
		return err
	}
	return b.Put([]byte(MetaKey), text)
}

// appendBoltKey appends the key under which the file keeps a record.
func appendBoltKey(dst, key []byte) []byte {
	return append(append(dst, KeyPrefix), key...)
}

// The description ends with a checksum of the text before it, because a stamp with a damaged digit
// would make a server pass over updates in its log:
//
//	{"Format":1, … ,"Check":"0123456789abcdef"}
const (
	checkMark = `,"Check":"`
	checkLen  = len(checkMark) + 16 + len(`"}`)
)

var errDescription = errors.New("the database's description is damaged: its checksum does not match; \"kttimedmgr repair\" saves the records")

// encodeMeta returns the text of a description.
func encodeMeta(m Meta) ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode the database's description: %w", err)
	}
	text = text[:len(text)-1]
	sum := binary.BigEndian.AppendUint64(nil, xxhash.Sum64(text))
	return append(hex.AppendEncode(append(text, checkMark...), sum), `"}`...), nil
}

// decodeMeta is the reverse of encodeMeta. A description from before there were checksums is
// accepted without one.
func decodeMeta(text []byte) (Meta, error) {
	var m Meta
	checked := false
	if end := len(text) - checkLen; end > 0 && bytes.HasPrefix(text[end:], []byte(checkMark)) {
		var sum [8]byte
		if _, err := hex.Decode(sum[:], text[end+len(checkMark):len(text)-2]); err != nil || binary.BigEndian.Uint64(sum[:]) != xxhash.Sum64(text[:end]) {
			return m, errDescription
		}
		checked = true
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("read the database's description: %w", err)
	}
	if m.Summed && !checked { // both came with the same version, so the checksum's mark is damaged
		return m, errDescription
	}
	return m, nil
}

// EncodeMeta returns a description as a file without runs and packed records holds it.
func EncodeMeta(m Meta) ([]byte, error) {
	m.Format, m.Packed = formatVersion, false
	return encodeMeta(m)
}

// DecodeMeta is the reverse of EncodeMeta. The error says that the text is no description, or of
// another format.
func DecodeMeta(text []byte) (Meta, error) {
	m, err := decodeMeta(text)
	if err != nil {
		return m, err
	}
	return m, m.checkFormat()
}

// usage is a number of records and their key and value bytes.
type usage struct{ count, bytes int64 }

// A description is the Meta of an open file in memory: what the last transaction wrote, and what
// the next one is to write (change).
type description struct {
	mu    sync.Mutex // guards the fields below
	meta  Meta
	exact usage // the latest exact count, see Estimate
}

func (d *description) init(m Meta) {
	d.meta, d.exact = m, usage{m.Count, m.Bytes}
}

func (d *description) get() Meta {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.meta
}

// change edits the description in memory; the next checkpoint writes it.
func (d *description) change(f func(*Meta)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.meta)
}

func (d *description) noteExact(u usage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.exact = u
}

func (d *description) lastExact() usage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.exact
}
