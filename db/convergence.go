package db

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"gotycoon/db/filestore"
	"gotycoon/ulog"
)

// Two servers that follow each other end with the same records when their files keep versions (#lww=true): an update of another server
// that is older than what the database has of its key is left out. An update of a client always counts: its log has given out no
// stamp, and has received none, that is as great.

// lww tells whether the database keeps versions.
func (d *DB) lww() bool { return d.file != nil && d.file.LWW() }

// outdo makes what is updated from now on newer than all that the file has, also when it comes to a new log while the clock is behind.
func (d *DB) outdo(log *logDir, m filestore.Meta) error {
	if !d.lww() {
		return nil
	}
	return log.Observe(max(m.Newest, m.Stamp))
}

// dropOlder takes the updates of other servers out of a batch that are older than what there is. The keys are locked.
func (d *DB) dropOlder(b *batch) error {
	kept := b.ups[:0]
	later := make(map[string]filestore.Version, len(b.ups)) // versions within the batch
	var unknown unknowns
	for _, u := range b.ups {
		if u.Origin.Log == 0 { // of an original server: nobody knows
			kept = append(kept, u)
			continue
		}
		v := filestore.Version{Stamp: u.Origin.Stamp, SID: u.SID}
		has, known := later[string(u.Key)]
		if !known {
			var err error
			if has, known, err = d.version(u.Key); err != nil {
				return err
			}
		}
		if has.Less(v) {
			unknown.note(&u, known, len(kept))
			later[string(u.Key)] = v
			kept = append(kept, u)
		}
	}
	b.ups = kept
	return b.renew(unknown)
}

// version returns that of what the database has of a key: of its record or its removal, and where it has neither (known is false), of the
// last clear.
func (d *DB) version(key []byte) (v filestore.Version, known bool, err error) {
	e, found, err := d.file.Entry(key)
	if err != nil {
		return v, false, systemError(err)
	}
	if !found {
		return d.file.Cleared(), false, nil
	}
	return e.Version, true, nil
}

// addClear adds the clear of another server to a batch: records that are newer are stored again behind it, and removals that are newer
// are repeated. All keys are locked.
func (d *DB) addClear(b *batch, from ulog.Update) error {
	v := filestore.Version{Stamp: from.Origin.Stamp, SID: from.SID}
	if !d.lww() || from.Origin.Log == 0 {
		b.clear(from)
		return nil
	}
	if !d.file.Cleared().Less(v) {
		return nil
	}
	newer := map[string]filestore.LastUpdate{}
	err := d.file.EachEntry(func(key []byte, e filestore.LastUpdate) {
		delete(newer, string(key))
		if v.Less(e.Version) {
			newer[string(key)] = e
		}
	}, func() { clear(newer) })
	if err != nil {
		return systemError(err)
	}
	b.clear(from)
	for key, e := range newer {
		if err := d.addAgain(b, []byte(key), e); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) clear(from ulog.Update) {
	b.addFrom(from.SID, ulog.OpClear, nil, nil)
	b.ups[len(b.ups)-1].Origin = from.Origin
}

// addAgain adds an update that leaves a key as it is, with its version. Followers whose files keep versions leave it out; others need it
// after the clear.
func (d *DB) addAgain(b *batch, key []byte, e filestore.LastUpdate) error {
	value, found, err := d.store.Get(nil, key, nil)
	if err != nil {
		return systemError(err)
	}
	op := ulog.OpSet
	if e.Removed || !found {
		op, value = ulog.OpRemove, nil
	}
	b.addFrom(e.SID, op, key, bytes.Clone(value))
	b.ups[len(b.ups)-1].Origin = ulog.Origin{Log: ulog.UnknownLog, Stamp: e.Stamp}
	return nil
}

// KeepsVersions tells whether updates of others are compared with what there is.
func (d *DB) KeepsVersions() bool { return d.lww() }

// LastVersion returns the version of what there is of a key, in a database that KeepsVersions.
func (d *DB) LastVersion(key []byte) (v LastUpdate, found bool, err error) {
	v, found, err = d.file.Entry(key)
	return v, found, systemError(err)
}

// An update of another server for a key of which nothing is known may be older than a removal that has been forgotten. To store it as it is
// would bring the record back here and nowhere else. So it becomes an update of this server, made now: that is later than the removal
// everywhere. The removal is lost then, but no update is, and the servers stay equal.

// unknowns are the updates of a batch for keys of which nothing is known, by key: the last of each.
type unknowns map[string]int

// note takes note of the update that is to become the i-th of the batch. known tells whether anything is known of its key, from before
// the batch or from earlier in it.
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
