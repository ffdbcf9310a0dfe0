package filestore

import (
	"bytes"
	"slices"

	bolt "go.etcd.io/bbolt"

	"gotycoon/ulog/update"
)

// # How removals are forgotten
//
// A file that keeps versions remembers removed keys: an update of a key that was made before the
// removal, and arrives after it, has to lose. Clients remove keys for ever, so the file forgets
// removals when it has more than Options.Removals of them.
//
// The rule: when there are too many removals, the older half is forgotten, and Meta.Floor becomes
// the stamp of the newest forgotten removal. Package db looks at the floor when an update of
// another server finds neither a record nor a remembered removal of its key. If the update is not
// newer than the floor, it may have lost against a forgotten removal, and nobody can tell any more.
// The database then stores the update with a new version of its own. The new version wins on every
// server, so that all servers still end with the same records.
//
// An example with a limit of 6. The file has removals with the stamps 10, 20, 30, 40, 50, 60 and
// 70. Seven are too many: the newest three stay, the removals up to 40 are forgotten, and the floor
// is 40. An update of the key k with the stamp 25 arrives, and there is no record k. Maybe k was
// removed at 30; so the update is stored as a new one. An update with the stamp 45 needs no care: a
// removal of k after 45 would still be here.
//
// Which removals belong to the older half is not known beforehand, so forgetting takes two walks
// through all entries: the first collects the stamps of the removals, the second forgets the
// removals up to the floor. A million entries take up to 0.2 seconds, for which writers may have to
// wait. Therefore one checkpoint looks at a million entries at most, and the next checkpoint goes
// on where this one ended. A removal that a checkpoint brings in between two parts of a walk may be
// forgotten or stay; both are right, because the floor covers every stamp that is forgotten.
//
// Rejected: an index of the removals by stamp, from which the oldest removal goes when a new one
// comes. The index would cost a second write into the file for each removal; halving looks at each
// removal about twice in its whole life. Rejected too: forgetting by age. How long a server may be
// away would then be a limit on correctness, and a wrong clock could forget everything.

// DefaultRemovals is how many removals a file with Meta.LWW remembers at most.
const DefaultRemovals = 1_000_000

// pruneEntries is how many entries one checkpoint looks at in order to forget removals.
const pruneEntries = 1_000_000

// A pruner forgets the older half of the removals when there are too many. It is guarded by runMu
// of the checkpointer.
type pruner struct {
	file  *bolt.DB
	write func(change func(tx *bolt.Tx) error) error
	desc  *description
	limit int64 // removals that may be remembered

	walk walk
}

// walk is how far the two walks have come.
type walk struct {
	next   []byte         // where the walk goes on; nil: at the beginning
	stamps []update.Stamp // of the removals that the first walk has met
	floor  update.Stamp   // the second walk forgets removals up to here; 0: it has not begun
}

func (w *walk) begun() bool { return w.next != nil || w.floor > 0 }

// prune goes on with the walks, or begins them where there are too many removals. It looks at no
// more than budget entries.
func (p *pruner) prune(budget int) error {
	if m := p.desc.get(); !m.LWW || !p.walk.begun() && m.Removals <= p.limit {
		return nil
	}
	for done := false; !done && budget > 0; {
		step := p.forget
		if p.walk.floor == 0 {
			step = p.chooseFloor
		}
		var err error
		if done, err = step(&budget); err != nil {
			return err
		}
	}
	return nil
}

// chooseFloor goes on with the first walk. At its end the second walk begins, unless there is
// nothing to forget.
func (p *pruner) chooseFloor(budget *int) (done bool, err error) {
	w := &p.walk
	err = p.file.View(func(tx *bolt.Tx) error {
		w.next = eachRemoval(tx, w.next, budget, func(_ []byte, at update.Stamp) bool {
			w.stamps = append(w.stamps, at)
			return true
		})
		return nil
	})
	if err != nil || w.next != nil {
		return false, err
	}
	stamps, keep := w.stamps, int(p.limit/2)
	*w = walk{}
	if len(stamps) <= keep {
		return true, nil
	}
	slices.Sort(stamps)
	w.floor = max(Oldest, stamps[len(stamps)-keep-1])
	return false, nil
}

// forget goes on with the second walk, by one transaction.
func (p *pruner) forget(budget *int) (done bool, err error) {
	w, m := &p.walk, p.desc.get()
	var next []byte
	err = p.write(func(tx *bolt.Tx) error {
		var old [][]byte
		next = eachRemoval(tx, w.next, budget, func(key []byte, at update.Stamp) bool {
			if at <= w.floor {
				old = append(old, bytes.Clone(key))
			}
			return len(old) < batchEntries
		})
		for _, key := range old {
			if err := tx.Bucket([]byte(VersionBucket)).Delete(key); err != nil {
				return err
			}
		}
		m.Removals -= int64(len(old))
		m.Floor = max(m.Floor, w.floor)
		return writeMeta(tx, m)
	})
	if err != nil {
		return false, err
	}
	p.desc.change(func(now *Meta) { *now = m })
	if w.next = next; next == nil {
		*w = walk{}
	}
	return next == nil, nil
}

// eachRemoval calls visit for the removals among the entries from a key on, until visit returns
// false or the budget is used up. Each entry, removal or not, takes one from the budget. next is
// where to go on; nil: the walk is at its end.
func eachRemoval(tx *bolt.Tx, from []byte, budget *int, visit func(key []byte, at update.Stamp) bool) (next []byte) {
	c := tx.Bucket([]byte(VersionBucket)).Cursor()
	k, b := c.Seek(from)
	for more := true; k != nil && more && *budget > 0; k, b = c.Next() {
		*budget--
		if e, ok := DecodeEntry(b); ok && e.Removed {
			more = visit(k, e.Stamp)
		}
	}
	return bytes.Clone(k)
}
