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

// prune forgets the older half of the removals when there are too many, so that each is looked at twice in its life at most. Meta.Floor
// says up to when removals are forgotten: package db takes care of older updates that arrive after it.
func (s *Store) prune() error {
	if !s.lww || s.Meta().Removals <= s.opts.Removals {
		return nil
	}
	stamps, err := s.removalStamps()
	if err != nil {
		return err
	}
	keep := int(s.opts.Removals / 2)
	if len(stamps) <= keep {
		return nil
	}
	slices.Sort(stamps)
	floor := stamps[len(stamps)-keep-1]
	for from := []byte{}; from != nil; {
		m := s.Meta()
		err := s.file.Update(func(tx *bolt.Tx) (err error) {
			if from, err = forget(tx.Bucket([]byte(versionBucket)), from, floor, &m); err != nil {
				return err
			}
			m.Floor = max(m.Floor, floor)
			return writeMeta(tx, m)
		})
		if err != nil {
			return err
		}
		s.changeMeta(func(now *Meta) { *now = m })
	}
	return nil
}

func (s *Store) removalStamps() (stamps []ulog.Stamp, err error) {
	err = s.file.View(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(versionBucket)).ForEach(func(_, b []byte) error {
			if e, ok := decodeEntry(b); ok && e.Removed {
				stamps = append(stamps, e.Stamp)
			}
			return nil
		})
	})
	return stamps, err
}

// forget removes the removals up to floor among the entries of one transaction, and returns where the next begins, nil for nowhere.
func forget(b *bolt.Bucket, from []byte, floor ulog.Stamp, m *Meta) (next []byte, err error) {
	var old [][]byte
	c := b.Cursor()
	k, v := c.Seek(from)
	for n := 0; k != nil && n < batchEntries; n++ {
		if e, ok := decodeEntry(v); ok && e.Removed && e.Stamp <= floor {
			old = append(old, bytes.Clone(k))
		}
		k, v = c.Next()
	}
	next = bytes.Clone(k)
	for _, k := range old {
		if err := b.Delete(k); err != nil {
			return nil, err
		}
	}
	m.Removals -= int64(len(old))
	return next, nil
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
