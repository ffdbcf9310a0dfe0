package db

import (
	"bytes"
	"fmt"

	"gotycoon/db/filestore"
	"gotycoon/ulog"
)

// Last writer wins.
//
// # The problem
//
// Two servers follow each other, and clients update both. Each server sees the same updates, but in
// another order: server 1 makes a=x and then receives a=y, server 2 makes a=y and then receives
// a=x. If each simply stored what comes, they would end with different records for ever.
//
// # The rule
//
// Every update has a version: the time stamp of the log in which the update was made, and the
// server ID that made it, which breaks ties. A file created with #lww=true remembers the version of
// the last update of each key, also where that update was a removal. An update of another server is
// stored only when its version is greater than the one the file has. All servers compare the same
// two versions, so all of them keep the same one.
//
//	            server 1                          server 2
//	10:00:01    client: a=x, version (01,1)
//	10:00:02                                      client: a=y, version (02,2)
//	            receives a=y (02,2): newer        receives a=x (01,1): older
//	            stores a=y                        leaves it out, and does not log it
//
// An update of a client is stored without a comparison. That is right because of ulog.Log.Observe:
// a log gives out no stamp that is not greater than all stamps it has given out or received, so a
// client's update is always the newest that its server knows of.
//
// # What has no version
//
// A key that nothing is known of has the version of the last clear, or of the moment before
// versions were kept.
//
// An update from an original server has no origin. Nobody can compare it, so it is stored.
//
// Checkpoints forget the older half of the removals when there are too many. An older update of
// another server could then bring a record back on this server only. Such an update is made anew,
// as an update of this server with a version of now: all servers store it, and stay equal. The
// removal is lost, but no update is. See batch.renew.
//
// Example: server 2 sets k at 16, removes k at 17 and sets k again at 18. Server 1 removes k at 20
// and forgets the removal, so its floor is 20. Then the set of 16 and the removal of 17 arrive
// together, and leave the removal of 17 behind. The set of 18 is newer than 17, but not newer than
// the floor: it becomes an update of server 1 at 30, and wins over the removal of 20 on server 2 as
// well.
//
// # What was rejected
//
// Comparing on the way of every update, also of clients, would read the old version from the disk
// before each set. Keeping removals for ever would let a file grow without records in it. Vector
// clocks would tell concurrent updates from later ones, but somebody has to choose between
// concurrent ones all the same, and clients of the original have no means to.

// outdo makes every later update newer than all that the file has, also when the file comes to a
// new log while the clock is behind.
func (d *recovery) outdo(log *logDir, m filestore.Meta) error {
	if !d.versions.lww() {
		return nil
	}
	return log.Observe(max(m.Newest, m.Stamp))
}

// dropOlder removes from a batch the updates of other servers that are older than what the database
// has. The caller has locked the keys.
func (s *versions) dropOlder(b *batch) error {
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
			if has, known, err = s.version(u.Key); err != nil {
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

// version returns the version of the last update of a key, be it a record or a removal, and where
// the database knows neither, the version of the last clear. known reports whether no newer removal
// of the key can have been forgotten. That is so where there is a record: a newer removal would
// have removed it. A removal that is remembered proves nothing, because it may have come after a
// newer removal was forgotten.
func (s *versions) version(key []byte) (v filestore.Version, known bool, err error) {
	e, found, err := s.file.Entry(key)
	if err != nil {
		return v, false, systemError(err)
	}
	if !found {
		return s.file.Cleared(), false, nil
	}
	return e.Version, !e.Removed, nil
}

// addClear adds the clear of another server to a batch. Records that are newer than the clear are
// stored again behind it, and removals that are newer are repeated. The caller has locked all keys.
func (s *versions) addClear(b *batch, from ulog.Update) error {
	v := filestore.Version{Stamp: from.Origin.Stamp, SID: from.SID}
	if !s.lww() || from.Origin.Log == 0 {
		b.clear(from)
		return nil
	}
	if !s.file.Cleared().Less(v) {
		return nil
	}
	newer := map[string]filestore.LastUpdate{}
	err := s.file.EachEntry(func(key []byte, e filestore.LastUpdate) {
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
		if err := s.addAgain(b, []byte(key), e); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) clear(from ulog.Update) {
	b.addFrom(from.SID, ulog.OpClear, nil, nil)
	b.ups[len(b.ups)-1].Origin = from.Origin
}

// addAgain adds an update that leaves a key as it is, with its version. Followers whose files keep
// versions leave the update out; other followers need it after the clear.
func (s *versions) addAgain(b *batch, key []byte, e filestore.LastUpdate) error {
	value, found, err := s.file.Get(nil, key, nil)
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

// LastVersion returns the version of the last update of a key, in a database that KeepsVersions.
func (d *DB) LastVersion(key []byte) (v LastUpdate, found bool, err error) {
	v, found, err = d.versions.file.Entry(key)
	return v, found, systemError(err)
}

// unknowns has, for each key of which a newer removal may have been forgotten, the index of the
// key's last update in a batch. See the essay above.
type unknowns map[string]int

// note records the update that becomes the i-th of the batch. known is the result of version for
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

// renew finds the updates that may be older than a forgotten removal; takeOver makes them updates
// of this server. A server whose clients may not update makes no updates of its own and leaves that
// to its master. The floor is read after the keys were looked up, so a removal that is forgotten in
// between counts.
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
		// a record without a version
		if _, found, err := d.store.Get(nil, u.Key, nil); err != nil || found {
			if err != nil {
				return systemError(err)
			}
			continue
		}
		b.renewed = append(b.renewed, i)
	}
	return nil
}

// takeOver makes the updates that renew has found this server's own. The caller holds
// core.commitMu.
func (b *batch) takeOver() {
	for _, i := range b.renewed {
		u := &b.ups[i]
		u.SID, u.Origin = b.db.sid, ulog.Origin{}
	}
	b.db.versions.renewed.Add(int64(len(b.renewed)))
}

// tell logs the first renewed update, and then each time their number has doubled.
func (s *versions) tell(d *core) {
	n, told := s.renewed.Load(), s.told.Load()
	if n < max(1, 2*told) || !s.told.CompareAndSwap(told, n) {
		return
	}
	d.logger.Warn(fmt.Sprintf("%s: %d updates of other servers so far may be older than removals that have been forgotten; they count as made "+
		"now, on all servers. More removals are remembered with -removals", d.path(), n))
}
