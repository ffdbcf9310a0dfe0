package filestore

import (
	"encoding/binary"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/memstore"
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

// LWW reports whether the file keeps versions.
func (s *Store) LWW() bool { return s.lww }

// Cleared returns the version of the last clear. The clear counts as the removal of every key that
// has no entry: an update of such a key loses when it is not newer than the clear.
func (s *Store) Cleared() Version {
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	return s.cleared
}

// Entry returns what is remembered of a key. The caller makes sure that nobody changes the key
// meanwhile.
func (s *Store) Entry(key []byte) (e LastUpdate, found bool, err error) {
	v := s.acquire()
	defer v.release()
	for _, o := range []*overlay{v.active, v.frozen} {
		if o == nil {
			continue
		}
		if e, found := o.entry(key); found || o.cleared.Load() {
			return e, found, nil
		}
	}
	err = s.file.View(func(tx *bolt.Tx) error {
		e, found = s.baseEntry(tx, key)
		return nil
	})
	return e, found, err
}

// baseEntry looks up the entry of a key in the file. If the file has Meta.Base, a record without an
// entry was there before versions were kept, and has the version Base.
func (s *Store) baseEntry(tx *bolt.Tx, key []byte) (LastUpdate, bool) {
	var room [64]byte
	at := append(append(room[:0], VersionPrefix), key...)
	if versions := tx.Bucket([]byte(VersionBucket)); versions != nil {
		if e, ok := DecodeEntry(versions.Get(at)); ok {
			return e, true
		}
	}
	at[0] = KeyPrefix
	if base := s.Meta().Base; base > 0 && tx.Bucket([]byte(DataBucket)).Get(at) != nil {
		return LastUpdate{Version: Version{Stamp: base}}, true
	}
	return LastUpdate{}, false
}

// entry looks up the entry of a key in the overlay.
func (o *overlay) entry(key []byte) (LastUpdate, bool) {
	var room [headSize]byte
	head, found := o.tree.GetHead(room[:0], key, headSize)
	if !found {
		return LastUpdate{}, false
	}
	return notedEntry(head)
}

// notedEntry decodes what an overlay has noted of a key; ok is false if the overlay has noted no
// version.
func notedEntry(flagged []byte) (e LastUpdate, ok bool) {
	flag := flagged[0]
	if flag&flagNoted == 0 {
		return e, false
	}
	return LastUpdate{decodeVersion(flagged[1:]), flag&flagLive == 0}, true
}

// note adds the version of ups[i] to the flag in scratch. The removal of an expired or evicted
// record (at is 0) is not in the log and has no version of its own. The key then keeps the version
// that this overlay has noted before; if there is none, Entry finds the version below the overlay.
func (o *overlay) note(b *memstore.Batch, at update.Stamp, ups []update.Update, i int) {
	v := VersionOf(at, ups, i)
	if at == 0 {
		before, found := b.Get(ups[i].Key)
		if !found || before[0]&flagNoted == 0 {
			return
		}
		v = decodeVersion(before[1:])
	}
	o.scratch[0] |= flagNoted
	o.scratch = appendVersion(o.scratch, v)
}

// noteClear remembers the version of the newest clear among updates. The caller holds applyMu.
func (s *Store) noteClear(at update.Stamp, ups []update.Update) {
	for i := range ups {
		if v := VersionOf(at, ups, i); ups[i].Op == update.OpClear && s.cleared.Less(v) {
			s.cleared = v
		}
	}
}

// EachEntry calls visit for what is remembered of every key, in no order. It goes through the
// layers from the oldest to the newest: records without an entry, entries of the file, the frozen
// overlay, the active one. So it may call visit several times for a key, and the last call counts.
// EachEntry calls forget when a layer begins with a clear: everything that visit was told before is
// void. The caller makes sure that nothing is changed meanwhile.
func (s *Store) EachEntry(visit func(key []byte, e LastUpdate), forget func()) error {
	v := s.acquire()
	defer v.release()
	err := s.file.View(func(tx *bolt.Tx) error {
		if base := s.Meta().Base; base > 0 {
			err := tx.Bucket([]byte(DataBucket)).ForEach(func(k, _ []byte) error {
				visit(k[1:], LastUpdate{Version: Version{Stamp: base}})
				return nil
			})
			if err != nil {
				return err
			}
		}
		versions := tx.Bucket([]byte(VersionBucket))
		if versions == nil { // the file has not been written since it was told to keep them
			return nil
		}
		return versions.ForEach(func(k, b []byte) error {
			if e, ok := DecodeEntry(b); ok {
				visit(k[1:], e)
			}
			return nil
		})
	})
	for _, o := range []*overlay{v.frozen, v.active} {
		if o == nil || err != nil {
			continue
		}
		if o.cleared.Load() {
			forget()
		}
		o.scan(everything, func(key, flagged []byte) bool {
			if e, ok := notedEntry(flagged); ok {
				visit(key, e)
			}
			return true
		})
	}
	return err
}
