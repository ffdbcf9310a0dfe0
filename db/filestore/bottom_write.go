package filestore

import (
	"bytes"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/run"
	"gotycoon/db/store"
	"gotycoon/internal/pieces"
)

// # Packed records
//
// bbolt splits a full page in the middle. When the keys of a file are random its pages are filled
// to 70 %, and with the header of an element a record of 116 bytes takes 190. Therefore small
// records are packed: an element of the bucket is a block of them, which fills half a page, and a
// merge that changes a quarter of the records writes full blocks (run.Editor). The same records
// take 132 bytes, and a merge passes over a record that does not change in a fifth of the time that
// it takes to change an element of bbolt.
//
// A record that would take more than half a block stays an element of the tree. So a large value is
// not written again because its neighbours are.
//
// Files of earlier versions have all records in the tree. A merge packs the small ones that it
// passes. Once a merge has passed them all (Meta.Packed) it looks up what it changes and walks no
// more: large values lie far apart, and each step would read a page.
//
// Rejected: packed records that are written anew as a whole by each merge, in the order of their
// keys, as a log-structured merge tree does. Pages would be filled to 100 % instead of about 90 %.
// But when records come in the order of their keys, as with time stamps, each merge would write
// all records to change the last ones.

// A bottomWriter brings the entries of one transaction of a merge into the bottom, in the order of
// their keys, and keeps the sums right.
//
// The tree is changed at the end, as the packed records are: its cursor stays where it is.
type bottomWriter struct {
	meta *Meta
	edit *run.Editor
	most int // bytes of a packed record

	bucket  *bolt.Bucket // the tree
	tree    *treeSource  // the records that were not passed yet
	updates []treeUpdate
	arena   arena
	bytes   int64 // of large records that were written

	versions *bolt.Bucket // nil where the file keeps none
	key      []byte       // scratch
}

// A treeUpdate changes a record of the tree; value is nil for a removal.
type treeUpdate struct{ key, value []byte }

// beginWrite returns the writer of a transaction that goes on behind Meta.MergedTo.
func (s *Store) beginWrite(tx *bolt.Tx, m *Meta) (w *bottomWriter, err error) {
	w = &bottomWriter{meta: m, edit: &s.merger.edit, most: run.PackedMost(tx.DB().Info().PageSize)}
	if m.LWW {
		if w.versions, err = tx.CreateBucketIfNotExists([]byte(VersionBucket)); err != nil {
			return nil, err
		}
	}
	w.bucket = tx.Bucket([]byte(DataBucket))
	w.tree = newTreeSource(w.bucket, m.behindMerged(), watching{})
	return w, w.edit.Begin(tx)
}

// behindMerged is where a merge goes on.
func (m *Meta) behindMerged() store.Start {
	return store.Start{Key: m.MergedTo, Edge: m.MergedTo == nil}
}

// written returns how many bytes the transaction writes so far.
func (w *bottomWriter) written() int64 { return int64(w.edit.Written()) + w.bytes }

func (w *bottomWriter) small(key, value []byte) bool { return len(key)+len(value) <= w.most }

// passNext passes the next record of the tree that comes before key, and packs it if it is small;
// nil stands behind all keys. passed is its key; nil: there is none, or none has to be packed.
func (w *bottomWriter) passNext(key []byte) (passed []byte, err error) {
	h := w.tree.head()
	if w.meta.Packed || h.key == nil || key != nil && bytes.Compare(h.key, key) >= 0 {
		return nil, nil
	}
	w.tree.next()
	if !w.small(h.key, h.body) {
		return h.key, nil
	}
	w.updates = append(w.updates, treeUpdate{key: h.key})
	_, twice, err := w.edit.Set(h.key, h.body)
	if twice {
		err = run.ErrDamaged // the record is in the tree and packed
	}
	return h.key, err
}

// put brings in an entry: its version, and its record or the removal of it. Everything before key
// has been passed.
func (w *bottomWriter) put(key, flagged []byte) error {
	if w.versions != nil {
		if err := w.writeVersion(key, flagged); err != nil {
			return err
		}
	}
	var value []byte
	live := flagged[0]&flagLive != 0
	if live {
		value = flagged[valueAt(flagged[0]):]
		w.meta.addRecord(key, value)
	}
	packed := live && w.small(key, value)
	old, found, err := w.pack(key, value, packed)
	if err != nil {
		return err
	}
	inTree := w.treeAt(key)
	if inTree.key != nil && bytes.Equal(inTree.key, key) {
		if found {
			return run.ErrDamaged
		}
		w.tree.next()
		old, found = inTree.body, true
		if !live || packed {
			w.updates = append(w.updates, treeUpdate{key: inTree.key})
		}
	}
	if found {
		w.meta.dropRecord(key, old)
	}
	if live && !packed {
		w.bytes += int64(len(key) + len(value))
		w.updates = append(w.updates, treeUpdate{w.arena.keep(key), w.arena.keep(value)})
	}
	return nil
}

// treeAt returns the first record of the tree that does not come before key.
func (w *bottomWriter) treeAt(key []byte) head {
	if h := w.tree.head(); h.key == nil || bytes.Compare(h.key, key) >= 0 {
		return h
	}
	w.tree.seek(store.Start{Key: key, Inclusive: true})
	return w.tree.head()
}

// pack changes the packed record of a key.
func (w *bottomWriter) pack(key, value []byte, packed bool) (old []byte, found bool, err error) {
	if packed {
		return w.edit.Set(key, value)
	}
	return w.edit.Remove(key)
}

// end changes the buckets.
func (w *bottomWriter) end() error {
	for _, u := range w.updates {
		w.key = appendBoltKey(w.key[:0], u.key)
		if u.value == nil {
			if err := w.bucket.Delete(w.key); err != nil {
				return err
			}
		} else if err := w.bucket.Put(w.key, u.value); err != nil {
			return err
		}
	}
	if err := w.edit.End(); err != nil {
		return err
	}
	if tx := w.bucket.Tx(); !run.AnyPacked(tx) { // earlier versions take an empty bucket for damage
		return tx.DeleteBucket([]byte(run.PackedBucket))
	}
	return nil
}

// writeVersion puts the version that was noted of the key into the file. If a record has expired or
// was evicted, none was noted. Then the entry in the file becomes a removal and keeps its version.
func (w *bottomWriter) writeVersion(key, flagged []byte) error {
	w.key = append(append(w.key[:0], VersionPrefix), key...)
	old, known := DecodeEntry(w.versions.Get(w.key))
	e, noted := notedEntry(flagged)
	if !noted {
		if !known || flagged[0]&flagLive != 0 || old.Removed {
			return nil
		}
		e = LastUpdate{old.Version, true}
	}
	if known && old.Removed {
		w.meta.Removals--
	}
	if e.Removed {
		w.meta.Removals++
	}
	var room [entrySize]byte
	return w.versions.Put(w.key, w.arena.keep(AppendEntry(room[:0], e)))
}

// An arena has copies of values, which bbolt refers to until the commit.
type arena struct{ room []byte }

const arenaSize = 1 << 20

// keep returns a copy, which is not nil.
func (a *arena) keep(value []byte) []byte {
	if a.room == nil || len(value) > cap(a.room)-len(a.room) {
		a.room = make([]byte, 0, max(arenaSize, len(value)))
	}
	at := len(a.room)
	a.room = pieces.Append(a.room, value)
	return a.room[at:len(a.room):len(a.room)]
}
