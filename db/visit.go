package db

import (
	"bytes"
	"errors"
	"hash/maphash"
	"sync/atomic"

	"gotycoon/db/dberr"
	"gotycoon/db/engine"
	"gotycoon/db/owed"
	"gotycoon/db/record"
	"gotycoon/db/store"
)

// Accept shows the record of key to visit and does what the verdict says, in one step for everybody
// else. An update that a read-only database refuses is refused before visit is called. With
// WatchOptions.Uniques it returns the number (see Unique) that the record has afterwards.
//
// In a database that an engine keeps, visit may be called several times, and then only the last
// call counts; it is called once where the client's visitors linger (Pending.Lingers).
func (d *DB) Accept(p *Pending, key []byte, visit record.Visitor) (unique uint64, err error) {
	return d.AcceptIf(p, key, 0, visit)
}

// AcceptIf is Accept for a record that must have a number, if it is there: when the record has
// another number, AcceptIf returns ErrConflict and does not call visit. With 0 any number will do.
func (d *DB) AcceptIf(p *Pending, key []byte, number uint64, visit record.Visitor) (unique uint64, err error) {
	if d.shared != nil && p.MayLinger() && number == 0 { // no script asks for numbers
		err = d.once(p, func(view *DB) error {
			_, err := view.Accept(p, key, visit)
			return err
		})
		return 0, err
	}
	return d.withUnique(p, key, func(b *batch) error {
		value, xt, found, err := b.live(b.owed, nil, key)
		if err == nil {
			err = b.numbered(key, found, number)
		}
		if err != nil {
			return err
		}
		b.obey(key, xt, found, visit(key, value, xt, found))
		return nil
	})
}

// numbered returns ErrConflict when there is a record and it has another number. Whoever was told
// engine.Replaced has a number of no record: the record that was changed in this very group, which
// reads as the same number, is not meant.
func (b *batch) numbered(key []byte, found bool, number uint64) error {
	if found && number != 0 && (number == engine.Replaced || b.unique(key) != number) {
		return dberr.ErrConflict
	}
	return nil
}

// unique returns the number of the record of a key as the batch reads it.
func (b *batch) unique(key []byte) uint64 {
	if b.view.View == nil {
		return b.db.unique(key)
	}
	rec, _ := b.view.Read(b.view.of.key(key))
	return rec.Revision
}

// obey adds the update that a verdict asks for. xt is the expiration time of the record as it was.
func (b *batch) obey(key []byte, xt int64, found bool, v record.Verdict) {
	switch v.Op {
	case record.Keep:
		return
	case record.Discard:
		if found {
			b.remove(key)
		}
		return
	case record.Renew:
		xt = b.db.absolute(v.XT)
	default:
		if !found {
			xt = record.MaxXT
		}
	}
	if !found {
		key = b.db.lines.target(key, v.Value)
	}
	b.put(nil, key, v.Value, v.Room, xt)
}

// AcceptBulk shows the records of keys to visit, in their order. A key that is in keys several
// times is shown as often, each time as the visits before have left it. All updates are committed
// together, in one step for everybody else.
func (d *DB) AcceptBulk(p *Pending, keys [][]byte, visit record.Visitor) error {
	b := d.newBatch()
	defer b.free()
	b.owed = p
	for _, key := range keys {
		if err := d.writable(key); err != nil {
			return err
		}
		b.keys.add(d.stripes.index(key))
	}
	if d.shared != nil {
		if p.MayLinger() {
			return d.once(p, func(view *DB) error { return view.AcceptBulk(p, keys, visit) })
		}
		return d.shared.whole(p, keys, how{}, func(b *batch) error { return b.acceptAll(keys, visit) })
	}
	if p.MayLinger() {
		d.stripes.linger(&b.keys)
		defer d.stripes.depart(&b.keys)
	}
	if err := d.lockKeys(p, &b.keys, true); err != nil {
		return err
	}
	err := b.acceptAll(keys, visit)
	if err == nil {
		err = d.commit(p, b)
	}
	if !b.logged && !dberr.Unavailable(err) {
		b.oweBatch(p)
	}
	d.stripes.unlock(&b.keys)
	if err == nil {
		d.sweeper.touch(writeScore * int64(len(keys)))
	}
	if waitErr := d.waitUnlessOwed(p, b); waitErr != nil {
		return waitErr
	}
	return err
}

// acceptAll visits the records and adds the updates. The batch's update of a key is newer than the
// store.
func (b *batch) acceptAll(keys [][]byte, visit record.Visitor) error {
	latest := make(map[string]int, len(keys)) // index of the key's last update, plus one
	for _, key := range keys {
		value, xt, found, err := b.now(key, latest[string(key)])
		if err != nil {
			return err
		}
		before := len(b.ups)
		b.obey(key, xt, found, visit(key, value, xt, found))
		if len(b.ups) > before {
			latest[string(key)] = len(b.ups)
		}
	}
	return nil
}

// now returns a record as the batch leaves it. update is the index of the key's last update, plus
// one.
func (b *batch) now(key []byte, update int) (value []byte, xt int64, found bool, err error) {
	if update == 0 {
		return b.live(b.owed, nil, key)
	}
	stored := b.ups[update-1].Value
	if stored == nil {
		return nil, 0, false, nil
	}
	xt, value, found = b.db.Split(stored)
	return value, xt, found, nil
}

// errStopped ends an iteration early.
var errStopped = errors.New("the iteration has been stopped")

// Iterate shows every record to visit, in the database's order, and does what the verdicts say, one
// record after the other. Records that others add or remove meanwhile may be met or not. It ends
// early when more returns false.
func (d *DB) Iterate(heed Heed, p *Pending, visit record.Visitor, more func() bool) error {
	var failed error
	err := d.Keys(owed.NewHeeding(heed), store.Start{Edge: true}, func(key []byte) bool {
		if !more() {
			failed = errStopped
			return false
		}
		key = bytes.Clone(key)
		before := p.Taken()
		_, failed = d.acceptLive(p, key, visit)
		p.GiveBack(before)
		return failed == nil
	})
	switch {
	case errors.Is(failed, errStopped):
	case failed != nil:
		return failed
	case err != nil:
		return err
	}
	return d.oweAll(p)
}

// acceptLive is Accept for a record that must still exist. met reports whether there was one.
func (d *DB) acceptLive(p *Pending, key []byte, visit record.Visitor) (met bool, err error) {
	if d.shared != nil && p.MayLinger() {
		err = d.once(p, func(view *DB) error {
			met, err = view.acceptLive(p, key, visit)
			return err
		})
		return met, err
	}
	err = d.modify(p, key, how{}, func(b *batch) error {
		var value []byte
		var xt int64
		var err error
		if value, xt, met, err = b.live(b.owed, nil, key); err != nil || !met {
			return err
		}
		b.obey(key, xt, true, visit(key, value, xt, true))
		return nil
	})
	return met, err
}

// Watch begins to keep what the options ask for. It is called at most once, before anybody else
// uses the database.
func (d *DB) Watch(o WatchOptions) {
	w := &watch{opts: o, seed: maphash.MakeSeed(), first: uint64(d.now().UnixMicro())}
	w.last.Store(w.first)
	if o.Uniques && d.shared == nil {
		w.slots = make([]atomic.Uint64, versionSlots)
	}
	w.claims.init(d.store)
	d.watch.Store(w)
}

// GetUnique is Get together with a number that changes with every update of the key, by whatever
// protocol, and with every restart. Needs WatchOptions.Uniques. The number may be of an older value
// than the one that is returned, never of a newer one: an old number makes a later AcceptIf fail,
// which is safe.
//
// The number is not stored: a table in memory has the number of the last update for each hash of a
// key. Numbers begin with the microseconds of the start, and so are greater than all of the process
// before. An engine that keeps the database numbers its records itself, and these numbers last.
func (d *DB) GetUnique(p *Pending, dst, key []byte) (value []byte, xt int64, unique uint64, err error) {
	if d.shared != nil {
		return d.shared.getUnique(p, dst, key)
	}
	unique = d.unique(key)
	value, xt, err = d.Get(p, dst, key)
	return value, xt, unique, err
}

// unique returns the number of a key.
func (d *core) unique(key []byte) uint64 {
	w := d.watch.Load()
	n := w.slot(key).Load()
	if n == 0 {
		n = w.first
	}
	return d.mixed(n)
}

// versionBits is the size of a version. Programs that keep a version as a floating-point number do
// not round it.
const versionBits = 53

// mixed adds the number of clears and undone transactions, which change every number. The result is
// never 0.
func (d *core) mixed(n uint64) uint64 {
	const spread = 0x9e3779b97f4a7c15
	n = (n + d.generation.Load()*spread) & (1<<versionBits - 1)
	return max(n, 1)
}

// DecideIf is AcceptIf for a decision that needs to know only whether there is a record: the value
// is not read.
func (d *DB) DecideIf(p *Pending, key []byte, number uint64, decide func(found bool) record.Verdict) (unique uint64, err error) {
	return d.withUnique(p, key, func(b *batch) error {
		_, xt, found, err := b.look(key)
		if err == nil {
			err = b.numbered(key, found, number)
		}
		if err == nil {
			b.obey(key, xt, found, decide(found))
		}
		return err
	})
}

// withUnique is modify; it returns the number that the record has afterwards.
func (d *DB) withUnique(p *Pending, key []byte, body func(b *batch) error) (unique uint64, err error) {
	w := d.watch.Load()
	switch {
	case d.shared != nil:
		return d.uniqueShared(p, key, body)
	case w == nil || w.slots == nil:
		return 0, d.modify(p, key, how{}, body)
	}
	err = d.modify(p, key, how{}, func(b *batch) error {
		if err := body(b); err != nil {
			return err
		}
		if len(b.ups) == 0 {
			unique = d.unique(key)
			return nil
		}
		b.version = w.last.Add(1)
		unique = d.mixed(b.version)
		return nil
	})
	return unique, err
}

// uniqueShared is withUnique for a database that an engine keeps.
func (d *DB) uniqueShared(p *Pending, key []byte, body func(b *batch) error) (unique uint64, err error) {
	if err := d.writable(key); err != nil {
		return 0, err
	}
	o, err := d.shared.modify(p, key, how{}, func(b *batch) error {
		err := body(b)
		if unique = 0; err == nil && len(b.ups) == 0 {
			unique = b.unique(key)
		}
		return err
	})
	if o.Revision != 0 {
		unique = o.Revision
	}
	return unique, err
}
