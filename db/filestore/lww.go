package filestore

import (
	bolt "go.etcd.io/bbolt"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

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

// Floor returns the stamp of the newest forgotten removal. The caller looks up an entry first and
// calls Floor afterwards: if the entry was forgotten before the look-up, the floor already covers
// it. In the other order a prune in between could forget the entry under an old floor.
func (s *Store) Floor() (floor update.Stamp, err error) {
	err = s.file.View(func(tx *bolt.Tx) error {
		m, err := readMeta(tx)
		floor = m.Floor
		return err
	})
	return floor, err
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
		o.scan(store.Start{Edge: true}, func(key, flagged []byte) bool {
			if e, ok := notedEntry(flagged); ok {
				visit(key, e)
			}
			return true
		})
	}
	return err
}
