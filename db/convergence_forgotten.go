package db

import (
	"fmt"
	"sync/atomic"

	"gotycoon/ulog"
)

// An update of another server for a key without a record may be older than a removal that has been
// forgotten. Stored as it is, it would bring the record back here and nowhere else. So it becomes an
// update of this server, made now, which is later than the removal everywhere. The removal is lost
// then, but no update is, and the servers stay equal.
//
// Example: server 2 sets k at 16, removes it at 17 and sets it again at 18; server 1 removes k at 20 and
// forgets that: its floor is 20. The set of 16 and the removal of 17 arrive together, and leave the
// removal of 17 behind. The set of 18 is newer than that, but not than the floor: it becomes an update of
// server 1 at 30, and wins over the removal of 20 on server 2 as well.

// unknowns are the updates of a batch for keys of which nothing is known, by key: the last of each.
type unknowns map[string]int

// note takes note of the update that is to become the i-th of the batch. known is what version says of
// its key, or true for a key that an earlier update of the batch has.
func (n *unknowns) note(u *ulog.Update, known bool, i int) {
	if _, before := (*n)[string(u.Key)]; known && !before {
		return
	}
	if *n == nil {
		*n = unknowns{}
	}
	(*n)[string(u.Key)] = i
}

// renew makes updates of this server of those that may be older than a forgotten removal. A server whose clients may not update makes none
// of its own: that is left to its master; takeOver asks for that at the last moment. The floor is read after the keys were looked up.
func (b *batch) renew(n unknowns) error {
	d := b.db
	if len(n) == 0 || d.refuses() {
		return nil
	}
	floor, err := d.file.Floor()
	if err != nil {
		return systemError(err)
	}
	for _, i := range n {
		u := &b.ups[i]
		if u.Op != ulog.OpSet || u.Origin.Stamp > floor {
			continue
		}
		if _, found, err := d.store.Get(nil, u.Key, nil); err != nil || found { // a record without a version
			if err != nil {
				return systemError(err)
			}
			continue
		}
		b.renewed = append(b.renewed, i)
	}
	return nil
}

// takeOver makes this server's own what renew has found. The caller holds DB.commitMu.
func (b *batch) takeOver() {
	for _, i := range b.renewed {
		u := &b.ups[i]
		u.SID, u.Origin = b.db.sid, ulog.Origin{}
	}
	b.db.renewals.count.Add(int64(len(b.renewed)))
}

// renewals counts the updates that renew has changed.
type renewals struct {
	count atomic.Int64
	told  atomic.Int64 // the count when it was logged last
}

// tell logs the first renewed update, and then every time when there are twice as many.
func (r *renewals) tell(d *DB) {
	n, told := r.count.Load(), r.told.Load()
	if n < max(1, 2*told) || !r.told.CompareAndSwap(told, n) {
		return
	}
	d.logger.Warn(fmt.Sprintf("%s: %d updates of other servers so far may be older than removals that have been forgotten; they count as made "+
		"now, on all servers. More removals are remembered with -removals", d.Path(), n))
}

// Renewed returns how many updates of other servers have become updates of this one since the start, because they may be older than
// removals that a file with lww=true has forgotten.
func (d *DB) Renewed() int64 { return d.renewals.count.Load() }
