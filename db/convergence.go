package db

import (
	"bytes"

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

// version returns the version of what the database has of a key: of its record or of its removal, and
// where it has neither, of the last clear. known reports whether no newer removal of the key can have
// been forgotten. That is so where there is a record, since the newer removal would have taken it away.
// A removal that is there proves nothing: it may have come after a newer one was forgotten.
func (d *DB) version(key []byte) (v filestore.Version, known bool, err error) {
	e, found, err := d.file.Entry(key)
	if err != nil {
		return v, false, systemError(err)
	}
	if !found {
		return d.file.Cleared(), false, nil
	}
	return e.Version, !e.Removed, nil
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
