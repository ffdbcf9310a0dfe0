package filestore

import (
	"slices"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/run"
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
	l, err := s.begin()
	if err != nil {
		return e, false, err
	}
	defer l.end()
	for _, o := range l.view.overlays {
		if e, found := o.entry(key); found || o.cleared.Load() {
			return e, found, nil
		}
	}
	return s.entryInFile(&l, key)
}

// entryInFile looks up the entry of a key in the file. If the file has Meta.Base, a record without
// an entry was there before versions were kept, and has the version Base. A tombstone without a
// version makes the newest older entry a removal.
func (s *Store) entryInFile(l *layers, key []byte) (e LastUpdate, found bool, err error) {
	base, gone := s.Meta().Base, false
	hash := run.Hash(key)
	for _, r := range l.runs.runs {
		if !r.MayHave(hash) || l.runs.merged(r, key) {
			continue
		}
		flagged, there, err := r.Find(l.tx, key)
		if err != nil {
			return e, false, err
		}
		if !there {
			continue
		}
		if e, noted := notedEntry(flagged); noted {
			e.Removed = e.Removed || gone
			return e, true, nil
		}
		if flagged[0]&flagLive != 0 { // from before versions were kept
			return LastUpdate{Version: Version{Stamp: base}}, base > 0 && !gone, nil
		}
		gone = true
	}
	var room [64]byte
	at := append(append(room[:0], VersionPrefix), key...)
	if e, ok := entryInBucket(l.tx, at); ok {
		e.Removed = e.Removed || gone
		return e, true, nil
	}
	if base > 0 && !gone {
		_, found, err = l.bottom.get(key)
	}
	if !found || err != nil {
		return LastUpdate{}, false, err
	}
	return LastUpdate{Version: Version{Stamp: base}}, true, nil
}

// entryInBucket looks up an entry in the bucket "version", which is not there when the file has not
// been written since it was told to keep versions.
func entryInBucket(tx *bolt.Tx, at []byte) (e LastUpdate, ok bool) {
	versions := tx.Bucket([]byte(VersionBucket))
	if versions == nil {
		return e, false
	}
	return DecodeEntry(versions.Get(at))
}

// Floor returns the stamp of the newest forgotten removal. The caller looks up an entry first and
// calls Floor afterwards: if the entry was forgotten before the look-up, the floor already covers
// it. In the other order a prune in between could forget the entry under an old floor.
func (s *Store) Floor() (floor update.Stamp, err error) {
	err = s.readFile(func(tx *bolt.Tx) error {
		m, err := readMeta(tx)
		floor = m.Floor
		return err
	})
	return floor, err
}

// EachEntry calls visit for what is remembered of every key, in no order. It goes through the
// layers from the oldest to the newest: records of the bottom without an entry, entries of the
// file, runs, frozen overlays, the active one. So it may call visit several times for a key, and
// the last call counts. EachEntry calls forget when a layer begins with a clear: everything that
// visit was told before is void. The caller makes sure that nothing is changed meanwhile.
func (s *Store) EachEntry(visit func(key []byte, e LastUpdate), forget func()) error {
	l, err := s.begin()
	if err != nil {
		return err
	}
	defer l.end()
	if err := s.eachInFile(&l, visit); err != nil {
		return err
	}
	for _, o := range slices.Backward(l.view.overlays) {
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
	return nil
}

func (s *Store) eachInFile(l *layers, visit func(key []byte, e LastUpdate)) error {
	base := s.Meta().Base
	if base > 0 {
		s := newBottomSource(l.bottom, store.Start{Edge: true}, l.watching())
		for h := s.head(); h.key != nil; h = s.head() {
			visit(h.key, LastUpdate{Version: Version{Stamp: base}})
			s.next()
		}
		if err := s.err(); err != nil {
			return err
		}
	}
	if versions := l.tx.Bucket([]byte(VersionBucket)); versions != nil { // nil: not written since the file was told to keep them
		_ = versions.ForEach(func(k, b []byte) error {
			if e, ok := DecodeEntry(b); ok {
				visit(k[1:], e)
			}
			return nil
		})
	}
	u := union{notes: true}
	for _, r := range l.runs.runs {
		u.add(l.runs.source(r, l.tx, store.Start{Edge: true}, l.watching()))
	}
	u.start()
	return u.run(func(h *head) bool {
		e, ok := notedEntry(h.body)
		switch {
		case ok:
		case h.live():
			e, ok = LastUpdate{Version: Version{Stamp: base}}, base > 0
		default:
			e, ok = entryInBucket(l.tx, append([]byte{VersionPrefix}, h.key...))
			e.Removed = true
		}
		if ok {
			visit(h.key, e)
		}
		return true
	})
}
