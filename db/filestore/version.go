package filestore

import (
	"encoding/binary"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/memstore"
	"gotycoon/ulog"
)

// Version says where and when an update was first made. A file with Meta.LWW remembers that of each record, and of the latest removals; of two
// updates of a key the one with the greater version counts, whatever the order in which they arrive.
type Version struct {
	Stamp ulog.Stamp // in the log of the server that made it
	SID   uint16     // of that server
}

// Oldest is the stamp of the records that were there before versions were kept: whatever comes counts more, as it does in files without
// versions.
const Oldest ulog.Stamp = 1

// Less tells whether v loses against o.
func (v Version) Less(o Version) bool {
	return v.Stamp < o.Stamp || v.Stamp == o.Stamp && v.SID < o.SID
}

// VersionOf returns the version of ups[i], where at is the stamp of the last of them.
func VersionOf(at ulog.Stamp, ups []ulog.Update, i int) Version {
	u := &ups[i]
	if u.Origin.Log != 0 {
		return Version{u.Origin.Stamp, u.SID}
	}
	return Version{at - ulog.Stamp(len(ups)-1-i), u.SID}
}

// LastUpdate is what is remembered of a key.
type LastUpdate struct {
	Version
	Removed bool
}

// An entry in the bucket "version", under the key 0x02 ‖ key: another prefix than in "data", so that a page tells what it is of when
// nothing leads to it any more.
//
//	offset  0       8     10        11
//	        ┌───────┬─────┬─────────┐
//	        │ stamp │ sid │ removed │   big-endian; removed is 0 or 1
//	        └───────┴─────┴─────────┘
const (
	versionBucket = "version"
	versionPrefix = 0x02
	versionSize   = 10
	entrySize     = versionSize + 1
)

func appendVersion(dst []byte, v Version) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(dst, uint64(v.Stamp)), v.SID)
}

func decodeVersion(b []byte) Version {
	return Version{ulog.Stamp(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint16(b[8:])}
}

func appendEntry(dst []byte, e LastUpdate) []byte {
	dst = appendVersion(dst, e.Version)
	if e.Removed {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func decodeEntry(b []byte) (e LastUpdate, ok bool) {
	if len(b) != entrySize {
		return e, false
	}
	return LastUpdate{decodeVersion(b), b[versionSize] != 0}, true
}

// LWW tells whether the file remembers versions.
func (s *Store) LWW() bool { return s.lww }

// Cleared returns the version of the last clear: an update of a key without an entry that is not newer has been cleared.
func (s *Store) Cleared() Version {
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	return s.cleared
}

// Entry returns what is remembered of a key. The caller keeps the key from being changed meanwhile.
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

// baseEntry looks into the file. A record that was there before versions were kept has the one of that moment.
func (s *Store) baseEntry(tx *bolt.Tx, key []byte) (LastUpdate, bool) {
	var room [64]byte
	at := append(append(room[:0], versionPrefix), key...)
	if versions := tx.Bucket([]byte(versionBucket)); versions != nil {
		if e, ok := decodeEntry(versions.Get(at)); ok {
			return e, true
		}
	}
	at[0] = keyPrefix
	if base := s.Meta().Base; base > 0 && tx.Bucket([]byte(dataBucket)).Get(at) != nil {
		return LastUpdate{Version: Version{Stamp: base}}, true
	}
	return LastUpdate{}, false
}

// entry looks a key up in the overlay.
func (o *overlay) entry(key []byte) (LastUpdate, bool) {
	var room [headSize]byte
	head, found := o.tree.GetHead(room[:0], key, headSize)
	if !found {
		return LastUpdate{}, false
	}
	return notedEntry(head)
}

// notedEntry returns what an overlay has noted in what it has of a key; ok is false where that is nothing.
func notedEntry(flagged []byte) (e LastUpdate, ok bool) {
	flag := flagged[0]
	if flag&flagNoted == 0 {
		return e, false
	}
	return LastUpdate{decodeVersion(flagged[1:]), flag&flagLive == 0}, true
}

// note adds the version of ups[i] to the flag in scratch. Updates that are not in the log, of expired and evicted records, have none: their
// keys keep what was noted before.
func (o *overlay) note(b *memstore.Batch, at ulog.Stamp, ups []ulog.Update, i int) {
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

// noteClear remembers the version of the last clear among updates.
func (s *Store) noteClear(at ulog.Stamp, ups []ulog.Update) {
	for i := range ups {
		if v := VersionOf(at, ups, i); ups[i].Op == ulog.OpClear && s.cleared.Less(v) {
			s.cleared = v
		}
	}
}

// EachEntry calls visit for what is remembered of every key, in no order, and for a key that was changed lately more than once: the
// last call counts. forget is called where everything told before counts no more. The caller keeps everything from being changed
// meanwhile.
func (s *Store) EachEntry(visit func(key []byte, e LastUpdate), forget func()) error {
	v := s.acquire()
	defer v.release()
	err := s.file.View(func(tx *bolt.Tx) error {
		if base := s.Meta().Base; base > 0 {
			err := tx.Bucket([]byte(dataBucket)).ForEach(func(k, _ []byte) error {
				visit(k[1:], LastUpdate{Version: Version{Stamp: base}})
				return nil
			})
			if err != nil {
				return err
			}
		}
		versions := tx.Bucket([]byte(versionBucket))
		if versions == nil { // the file has not been written since it was told to keep them
			return nil
		}
		return versions.ForEach(func(k, b []byte) error {
			if e, ok := decodeEntry(b); ok {
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
