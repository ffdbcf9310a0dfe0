package filestore

import (
	"encoding/binary"

	"gotycoon/ulog/update"
)

// Version says when and on which server an update was first made. A file with Meta.LWW keeps the
// version of each record and of the latest removals. Of two updates of a key the one with the
// greater version wins, in whatever order they arrive; so servers that update each other end with
// the same records.
//
// An example: server 1 sets k at 100, server 2 removes k at 105, and the two updates cross on the
// way. Server 1 has (100, 1), receives (105, 2), and removes k. Server 2 has the removal (105, 2),
// receives (100, 1), and leaves it out. Both end without k. If server 2 had forgotten its removal,
// it would take the set, and k would exist on server 2 alone. See prune.go for what happens when
// removals are forgotten.
type Version struct {
	Stamp update.Stamp // in the log of the server that made the update
	SID   uint16       // server id of the server that made the update
}

// Oldest is the stamp of records that were there before versions were kept. Every update wins
// against such records, as every update does in files without versions.
const Oldest update.Stamp = 1

// Less reports whether v loses against o.
func (v Version) Less(o Version) bool {
	return v.Stamp < o.Stamp || v.Stamp == o.Stamp && v.SID < o.SID
}

// VersionOf returns the version of ups[i]. The updates of one call have consecutive stamps, of
// which at is the last. An update that came from another server has the version that it got there.
func VersionOf(at update.Stamp, ups []update.Update, i int) Version {
	u := &ups[i]
	if u.Origin.Log != 0 {
		return Version{u.Origin.Stamp, u.SID}
	}
	return Version{at - update.Stamp(len(ups)-1-i), u.SID}
}

// LastUpdate is what is remembered of a key: the version of its last update, and whether the update
// removed it.
type LastUpdate struct {
	Version
	Removed bool
}

const (
	versionSize = 10
	entrySize   = versionSize + 1
)

func appendVersion(dst []byte, v Version) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(dst, uint64(v.Stamp)), v.SID)
}

func decodeVersion(b []byte) Version {
	return Version{update.Stamp(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint16(b[8:])}
}

// AppendEntry appends an entry of the bucket "version":
//
//	offset  0       8     10        11
//	        ┌───────┬─────┬─────────┐
//	        │ stamp │ sid │ removed │   big-endian; removed is 0 or 1
//	        └───────┴─────┴─────────┘
func AppendEntry(dst []byte, e LastUpdate) []byte {
	dst = appendVersion(dst, e.Version)
	if e.Removed {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// DecodeEntry is the reverse of AppendEntry; ok is false for bytes that are no entry.
func DecodeEntry(b []byte) (e LastUpdate, ok bool) {
	if len(b) != entrySize {
		return e, false
	}
	return LastUpdate{decodeVersion(b), b[versionSize] != 0}, true
}
