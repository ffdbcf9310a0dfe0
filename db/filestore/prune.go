package filestore

import (
	"bytes"
	"slices"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/store"
	"gotycoon/ulog"
)

// DefaultRemovals is how many removals a file with Meta.LWW remembers at most.
const DefaultRemovals = 1_000_000

var everything = store.Start{Edge: true}

// pruneEntries is how many entries one checkpoint looks at for the removals among them, which takes up to 0.2 seconds; writers may have to
// wait for that.
const pruneEntries = 1_000_000

// pruning is a walk through all entries to forget the older half of the removals, and before that one to find out which these are. Both go
// on at the next checkpoint where this one has done enough: what the checkpoint brings in between may be forgotten as well, or stay. Guarded
// by runMu.
type pruning struct {
	next   []byte       // where the walk goes on; nil: at the beginning
	stamps []ulog.Stamp // of the removals that the first walk has met
	floor  ulog.Stamp   // up to which the second one forgets them; 0: it has not begun
}

func (p *pruning) begun() bool { return p.next != nil || p.floor > 0 }

// prune forgets the older half of the removals when there are too many, so that each is looked at twice in its life at most. Meta.Floor
// says up to when removals are forgotten: package db takes care of older updates that arrive after it. No more than budget entries are
// looked at. The caller holds runMu.
func (s *Store) prune(budget int) error {
	p := &s.pruning
	if !s.lww || !p.begun() && s.Meta().Removals <= s.opts.Removals {
		return nil
	}
	for done := false; !done && budget > 0; {
		step := s.forget
		if p.floor == 0 {
			step = s.chooseFloor
		}
		var err error
		if done, err = step(&budget); err != nil {
			return err
		}
	}
	return nil
}

// chooseFloor goes on with the first walk. At its end it begins the second one, or is done where there is nothing to forget.
func (s *Store) chooseFloor(budget *int) (done bool, err error) {
	p := &s.pruning
	err = s.file.View(func(tx *bolt.Tx) error {
		p.next = eachRemoval(tx, p.next, budget, func(_ []byte, at ulog.Stamp) bool {
			p.stamps = append(p.stamps, at)
			return true
		})
		return nil
	})
	if err != nil || p.next != nil {
		return false, err
	}
	stamps, keep := p.stamps, int(s.opts.Removals/2)
	*p = pruning{}
	if len(stamps) <= keep {
		return true, nil
	}
	slices.Sort(stamps)
	p.floor = max(Oldest, stamps[len(stamps)-keep-1])
	return false, nil
}

// forget goes on with the second walk, by one transaction.
func (s *Store) forget(budget *int) (done bool, err error) {
	p, m := &s.pruning, s.Meta()
	var next []byte
	err = s.file.Update(func(tx *bolt.Tx) error {
		var old [][]byte
		next = eachRemoval(tx, p.next, budget, func(key []byte, at ulog.Stamp) bool {
			if at <= p.floor {
				old = append(old, bytes.Clone(key))
			}
			return len(old) < batchEntries
		})
		for _, key := range old {
			if err := tx.Bucket([]byte(versionBucket)).Delete(key); err != nil {
				return err
			}
		}
		m.Removals -= int64(len(old))
		m.Floor = max(m.Floor, p.floor)
		return writeMeta(tx, m)
	})
	if err != nil {
		return false, err
	}
	s.changeMeta(func(now *Meta) { *now = m })
	if p.next = next; next == nil {
		*p = pruning{}
	}
	return next == nil, nil
}

// eachRemoval calls visit for the removals among the entries from a key on, until it returns false or the budget, from which all entries are
// taken, is used up. It returns where to go on, nil for nowhere.
func eachRemoval(tx *bolt.Tx, from []byte, budget *int, visit func(key []byte, at ulog.Stamp) bool) (next []byte) {
	c := tx.Bucket([]byte(versionBucket)).Cursor()
	k, b := c.Seek(from)
	for more := true; k != nil && more && *budget > 0; k, b = c.Next() {
		*budget--
		if e, ok := decodeEntry(b); ok && e.Removed {
			more = visit(k, e.Stamp)
		}
	}
	return bytes.Clone(k)
}

// Floor returns the stamp of the newest removal that has been forgotten, as of now: what was looked up before is not older.
func (s *Store) Floor() (floor ulog.Stamp, err error) {
	err = s.file.View(func(tx *bolt.Tx) error {
		m, err := readMeta(tx)
		floor = m.Floor
		return err
	})
	return floor, err
}
