package db

import (
	"bytes"

	"gotycoon/db/dberr"
	"gotycoon/db/owed"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// Noting returns the position that the log keeps with the updates when the first n of them are
// stored; nil for none.
type Noting func(n int) *ulog.Position

// Replicate stores the updates of another server, in their order and as they are: values with the
// expiration time in front, whether that time has passed or not. The updates are logged under the
// server ID they came with and this database's index, with new stamps. Removing a record that does
// not exist is no error. As with a bulk that is not atomic there are several commits. Each commit
// puts the position that note returns into the log, and later into the file, together with its
// updates, so that the server knows after a crash where to go on. note may be nil.
//
// Updates that the database can never hold (a key too long, an unknown operation) are left out, and
// the first of them is returned as an *Error with the code InvalidOperation after the others are
// stored. Every other error ends the call. The updates may then be given again: storing an update
// twice changes nothing, except that a text database has one more line.
func (d *DB) Replicate(p *Pending, ups []ulog.Update, note Noting) error {
	return d.ReplicateSome(p, ups, note, nil)
}

// Taking reports whether an update of another server is to be stored. An error ends the call that
// asks.
type Taking func(u *ulog.Update) (bool, error)

// ReplicateSome is Replicate for a database of which other servers may change some records only.
// takes is asked before the records are locked; updates that it refuses are left out, while the
// positions are stored all the same. An update that takes accepts is stored also where the database
// keeps versions and has a newer one. A nil takes accepts every update, as Replicate does.
func (d *DB) ReplicateSome(p *Pending, ups []ulog.Update, note Noting, takes Taking) error {
	if d.readOnly {
		return dberr.ErrReadOnly
	}
	var refused error
	for done := 0; done < len(ups); {
		n := replicaChunk(ups[done:])
		var f *ulog.Position
		if note != nil {
			f = note(done + n)
		}
		leftOut, err := d.replicate(p, ups[done:done+n], f, takes)
		if err != nil {
			return err
		}
		if refused == nil {
			refused = leftOut
		}
		done += n
	}
	return refused
}

// replicaChunk returns how many of ups are committed together. A clear stands alone.
func replicaChunk(ups []ulog.Update) int {
	size := 0
	for i := range ups {
		size += len(ups[i].Value)
		alone := ups[0].Op == ulog.OpClear || ups[i].Op == ulog.OpClear
		if i > 0 && (alone || i == chunkRecords || size > chunkBytes) {
			return i
		}
	}
	return len(ups)
}

// replicate commits one chunk. leftOut is the error of the first update that cannot be stored.
func (d *DB) replicate(p *Pending, ups []ulog.Update, f *ulog.Position, takes Taking) (leftOut, err error) {
	if ups[0].Op == ulog.OpClear && takes == nil {
		return nil, d.clear(p, ups[0], f, false)
	}
	if err := d.throttle(); err != nil {
		return nil, err
	}
	b := d.newBatch()
	defer b.free()
	b.follow, b.master = f, true
	for i := range ups {
		u := &ups[i]
		if takes != nil {
			if take, err := takes(u); err != nil {
				return nil, err
			} else if !take {
				continue
			}
		}
		if err := d.storable(u); err != nil {
			if leftOut == nil {
				leftOut = err
			}
			continue
		}
		b.addFrom(u.SID, u.Op, u.Key, u.Value)
		b.ups[len(b.ups)-1].Origin = u.Origin
		b.keys.add(d.stripes.index(u.Key))
	}
	_ = d.lockKeys(nil, &b.keys, false) // a master needs no right
	b.placeLines()
	if d.versions.lww() && takes == nil {
		err = d.versions.dropOlder(b)
	}
	if err == nil {
		err = d.commit(p, b)
	}
	d.stripes.unlock(&b.keys)
	if err != nil {
		return nil, err
	}
	if b.renewed != nil {
		d.versions.tell(&d.core)
	}
	d.sweeper.touch(writeScore * int64(len(b.ups)))
	return leftOut, d.waitUnlessOwed(p, b)
}

// Strangers returns keys of a Mergeable database that known does not know, at most limit of them.
// The keys are behind after (nil: from the first record) and up to upTo (nil: to the last record).
func (d *DB) Strangers(after, upTo []byte, limit int, known func(key []byte) bool) (keys [][]byte, err error) {
	err = d.keys(new(owed.Heeding), store.Start{Key: after, Edge: after == nil}, func(key []byte) bool {
		if upTo != nil && bytes.Compare(key, upTo) > 0 {
			return false
		}
		if !known(key) {
			keys = append(keys, bytes.Clone(key))
		}
		return len(keys) < limit
	})
	return keys, err
}
