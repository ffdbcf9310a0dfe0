package db

import (
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// Record is one record of a bulk operation.
type Record struct {
	Key, Value []byte
	XT         record.XT

	Room []byte // of SetBulk: a large value as StoreInPlace takes it; nil: Value is copied
}

const (
	chunkRecords = 256     // records of a bulk committed together when it is not atomic
	chunkBytes   = 1 << 20 // and their size
)

// SetBulk stores records in their order and returns how many. With atomic, all are stored or none,
// also when the machine stops. Without atomic, an error leaves the records in front of the failed
// one stored.
func (d *DB) SetBulk(p *Pending, recs []Record, atomic bool) (stored int, err error) {
	for len(recs) > 0 {
		n := len(recs)
		if !atomic {
			n = chunkLength(recs)
		}
		done, err := d.setChunk(p, recs[:n], atomic)
		stored += done
		if err != nil {
			return stored, inPart(stored, "stored", err)
		}
		recs = recs[n:]
	}
	return stored, nil
}

// chunkLength returns how many of recs are committed together.
func chunkLength(recs []Record) int {
	size := 0
	for i := range recs {
		if size += len(recs[i].Value); i == chunkRecords || (i > 0 && size > chunkBytes) {
			return i
		}
	}
	return len(recs)
}

// setChunk stores records as one commit. A record that cannot be stored ends the chunk; the records
// before it are stored, unless the bulk is atomic.
func (d *DB) setChunk(p *Pending, recs []Record, atomic bool) (stored int, err error) {
	if d.shared != nil {
		return d.setShared(p, recs, atomic)
	}
	if len(recs) == 1 && d.goesAhead(len(recs[0].Value)) {
		return d.setOne(p, &recs[0])
	}
	b := d.newBatch()
	defer b.free()
	b.owed = p
	if err := d.writable(recs[0].Key); err != nil { // waits for the disk, once for all
		return 0, err
	}
	for stored < len(recs) {
		if err = d.checkKey(recs[stored].Key); err != nil {
			break
		}
		if err = d.throttleFor(recs[stored].Value); err != nil {
			break
		}
		b.keys.add(d.stripes.index(recs[stored].Key))
		stored++
	}
	if stored == 0 || (err != nil && atomic) {
		return 0, err
	}
	if err := d.lockKeys(p, &b.keys, true); err != nil {
		return 0, err
	}
	for i := range recs[:stored] {
		r := &recs[i]
		b.put(nil, d.lines.target(r.Key, r.Value), r.Value, r.Room, d.absolute(r.XT))
	}
	commitErr := d.commit(p, b)
	d.stripes.unlock(&b.keys)
	if commitErr != nil {
		return 0, commitErr
	}
	d.sweeper.touch(writeScore * int64(stored))
	if waitErr := d.waitUnlessOwed(p, b); waitErr != nil {
		return 0, waitErr
	}
	return stored, err
}

// setShared is setChunk for a database that an engine keeps.
func (d *DB) setShared(p *Pending, recs []Record, atomic bool) (stored int, err error) {
	var keys [][]byte
	bytes := 0
	for i := range recs {
		if err = d.writable(recs[i].Key); err != nil {
			if atomic {
				return 0, err
			}
			break
		}
		keys = append(keys, recs[i].Key)
		bytes += len(recs[i].Value)
	}
	stored, failed := d.shared.setAll(p, keys, bytes, atomic, func(b *batch) {
		for _, r := range recs[:len(keys)] {
			b.put(nil, r.Key, r.Value, r.Room, d.absolute(r.XT))
		}
	})
	if failed != nil {
		err = failed
	}
	return stored, err
}

// setOne stores the only record of a chunk.
func (d *DB) setOne(p *Pending, r *Record) (stored int, err error) {
	if r.Room != nil {
		err = d.StoreInPlace(p, r.Key, r.Room, r.XT, record.Anyway)
	} else {
		err = d.Set(p, r.Key, r.Value, r.XT)
	}
	if err != nil {
		return 0, err
	}
	return 1, nil
}

// RemoveBulk removes the records of keys and returns how many existed. atomic is as in SetBulk.
func (d *DB) RemoveBulk(p *Pending, keys [][]byte, atomic bool) (removed int, err error) {
	for len(keys) > 0 {
		n, hits, err := d.removeChunk(p, keys, atomic)
		removed += hits
		if err != nil {
			return removed, inPart(removed, "removed", err)
		}
		keys = keys[n:]
	}
	return removed, nil
}

// removeChunk removes the records of the first n keys as one commit: of all keys with atomic,
// otherwise of as many as have a stripe of their own, so that a key given twice is found once.
func (d *core) removeChunk(p *Pending, keys [][]byte, atomic bool) (n, hits int, err error) {
	if d.shared != nil {
		return d.removeShared(p, keys, atomic)
	}
	b := d.newBatch()
	defer b.free()
	for n < len(keys) && (atomic || n < chunkRecords) {
		if err := d.writable(keys[n]); err != nil {
			return 0, 0, err
		}
		if !b.keys.add(d.stripes.index(keys[n])) && !atomic {
			break
		}
		n++
	}
	if err := d.lockKeys(p, &b.keys, true); err != nil {
		return 0, 0, err
	}
	hits, err = b.removeAll(keys[:n])
	if err == nil {
		err = d.commit(p, b)
	}
	if !b.logged && !dberr.Unavailable(err) {
		b.oweBatch(p)
	}
	d.stripes.unlock(&b.keys)
	if err != nil {
		return 0, 0, err
	}
	d.sweeper.touch(writeScore * int64(n))
	return n, hits, d.waitUnlessOwed(p, b)
}

// removeShared is removeChunk for a database that an engine keeps.
func (d *core) removeShared(p *Pending, keys [][]byte, atomic bool) (n, hits int, err error) {
	if n = len(keys); !atomic {
		n = min(n, chunkRecords)
	}
	for _, key := range keys[:n] {
		if err := d.writable(key); err != nil {
			return 0, 0, err
		}
	}
	if !atomic {
		hits, err = d.shared.removeEach(p, keys[:n])
		return n, hits, err
	}
	err = d.shared.whole(p, keys, how{}, func(b *batch) (err error) {
		hits, err = b.removeAll(keys)
		return err
	})
	return n, hits, err
}

// removeAll adds the removal of keys and returns how many of the keys have a record. A key given
// twice counts once.
func (b *batch) removeAll(keys [][]byte) (hits int, err error) {
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		found, err := b.exists(key)
		if err != nil {
			return 0, err
		}
		if found && !seen[string(key)] {
			hits++
		}
		seen[string(key)] = true
		b.remove(key)
	}
	return hits, nil
}

// GetBulk calls visit for each key that has a record, in the order of keys. i is the key's index,
// value is valid during the call. With atomic, all values are of one instant with respect to atomic
// updates.
func (d *DB) GetBulk(p *Pending, keys [][]byte, atomic bool, visit func(i int, value []byte, xt int64)) error {
	if d.shared != nil {
		return d.shared.read(p, keys, atomic, visit)
	}
	if err := d.getBulk(p, keys, atomic, visit); err != nil {
		return err
	}
	return d.oweKeys(p, keys)
}

func (d *core) getBulk(p *Pending, keys [][]byte, atomic bool, visit func(i int, value []byte, xt int64)) error {
	b := d.newBatch()
	defer b.free()
	if atomic {
		for _, key := range keys {
			b.keys.add(d.stripes.index(key))
		}
		d.stripes.lock(&b.keys)
		defer d.stripes.unlock(&b.keys)
	}
	d.sweeper.add(readScore * int64(len(keys)))
	for first := 0; first < len(keys); first += chunkRecords {
		chunk := keys[first:min(first+chunkRecords, len(keys))]
		done, err := d.getTogether(chunk, func(i int, value []byte, xt int64) { visit(first+i, value, xt) })
		if err != nil {
			return err
		}
		for i := done; i < len(chunk); i++ {
			value, xt, found, err := b.scratch(p, chunk[i])
			if err != nil {
				return err
			}
			if found {
				visit(first+i, value, xt)
			}
		}
	}
	return nil
}

// getTogether reads the first of some keys together, where the store can do that, and returns how
// many. The others are to be read one by one.
func (d *core) getTogether(keys [][]byte, visit func(i int, value []byte, xt int64)) (done int, err error) {
	if len(keys) == 1 {
		return 0, nil
	}
	if w, ok := d.store.(store.Warmer); ok {
		w.Warm(keys)
	}
	if d.file == nil || d.records() != d.store {
		return 0, nil
	}
	done, err = d.file.GetBulk(keys, func(i int, stored []byte) {
		if value, xt, found := d.live(stored); found {
			visit(i, value, xt)
		}
	})
	return done, systemError(err)
}

// Replicate stores the updates of another server, in their order and as they are: values with the
// expiration time in front, whether that time has passed or not. The updates are logged under the
// server ID they came with and this database's index, with new stamps. Removing a record that does
// not exist is no error. As with a bulk that is not atomic there are several commits. Each commit
// that stores the updates up to the n-th puts the position note(n), unless it is nil, into the log,
// and later into the file, together with its updates, so that the server knows after a crash where
// to go on. note may be nil.
//
// Updates that the database can never hold (a key too long, an unknown operation) are left out, and
// the first of them is returned as an *Error with the code InvalidOperation after the others are
// stored. Every other error ends the call. The updates may then be given again: storing an update
// twice changes nothing, except that a text database has one more line.
//
// Where other servers may change some records only, takes is not nil. It is asked before the
// records are locked, and reports whether an update is to be stored; updates that it refuses are
// left out, while the positions are stored all the same. An error of takes ends the call. An update
// that takes accepts is stored also where the database keeps versions and has a newer one.
func (d *DB) Replicate(p *Pending, ups []ulog.Update, note func(n int) *ulog.Position, takes func(u *ulog.Update) (bool, error)) error {
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
func (d *DB) replicate(p *Pending, ups []ulog.Update, f *ulog.Position, takes func(u *ulog.Update) (bool, error)) (leftOut, err error) {
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
	if d.shared != nil {
		return leftOut, d.shared.replicate(b, f)
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

// placeLines gives records that go to a text database their keys, which are the places of their
// lines. The caller has locked the stripe.
func (b *batch) placeLines() {
	if !b.db.lines.text {
		return
	}
	for i := range b.ups {
		if u := &b.ups[i]; u.Op == ulog.OpSet {
			_, value, _ := b.db.Split(u.Value)
			u.Key = b.db.lines.target(u.Key, value)
		}
	}
}
