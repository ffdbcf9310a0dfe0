package db

import (
	"bytes"
	"errors"

	"gotycoon/db/owed"
	"gotycoon/db/record"
	"gotycoon/db/store"
)

// Accept shows the record of key to visit and does what the verdict says, in one step for everybody
// else. An update that a read-only database refuses is refused before visit is called.
func (d *DB) Accept(p *Pending, key []byte, visit record.Visitor) error {
	return d.modify(p, key, func(b *batch) error { return b.accept(key, visit) })
}

// accept visits one record and adds the update.
func (b *batch) accept(key []byte, visit record.Visitor) error {
	value, xt, found, err := b.db.read(b.owed, nil, key)
	if err != nil {
		return err
	}
	b.obey(key, xt, found, visit(key, value, xt, found))
	return nil
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
	if err := d.lockKeys(p, &b.keys, true); err != nil {
		return err
	}
	err := b.acceptAll(keys, visit)
	if err == nil {
		err = d.commit(p, b)
	}
	b.oweBatch(p)
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
		return b.db.read(b.owed, nil, key)
	}
	stored := b.ups[update-1].Value
	if stored == nil {
		return nil, 0, false, nil
	}
	xt, value, found = b.db.split(stored)
	return value, xt, found, nil
}

// errStopped ends an iteration early.
var errStopped = errors.New("the iteration has been stopped")

// Iterate shows every record to visit, in the database's order, and does what the verdicts say, one
// record after the other. Records that others add or remove meanwhile may be met or not. It ends
// early when more returns false.
func (d *DB) Iterate(heed Heed, p *Pending, visit record.Visitor, more func() bool) error {
	var failed error
	err := d.keys(owed.NewHeeding(heed), store.Start{Edge: true}, func(key []byte) bool {
		if !more() {
			failed = errStopped
			return false
		}
		key = bytes.Clone(key)
		before := p.Taken()
		failed = d.modify(p, key, func(b *batch) error { return b.acceptLive(key, visit) })
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

// acceptLive is accept for a record that must still exist.
func (b *batch) acceptLive(key []byte, visit record.Visitor) error {
	value, xt, found, err := b.db.read(b.owed, nil, key)
	if err != nil || !found {
		return err
	}
	b.obey(key, xt, true, visit(key, value, xt, true))
	return nil
}

// Walk shows every live record to visit until visit returns false. The slices are the visitor's.
// Nothing is locked meanwhile.
func (d *DB) Walk(heed Heed, p *Pending, visit func(key, value []byte, xt int64) bool) error {
	var failed error
	err := d.keys(owed.NewHeeding(heed), store.Start{Edge: true}, func(key []byte) bool {
		before := p.Taken()
		defer p.GiveBack(before)
		value, xt, found, err := d.read(p, nil, key)
		if failed = err; err != nil {
			return false
		}
		return !found || visit(bytes.Clone(key), value, xt)
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	return d.oweAll(p)
}

// Accept shows the record that the cursor is on to visit, does what the verdict says, and with step
// moves on. After a removal the cursor is on the next record anyway.
func (c *Cursor) Accept(p *Pending, visit record.Visitor, step bool) error {
	return c.seen(p, c.accept(p, visit, step))
}

func (c *Cursor) accept(p *Pending, visit record.Visitor, step bool) error {
	removed := false
	e, err := c.acceptCurrent(p, func(key, value []byte, xt int64, found bool) record.Verdict {
		v := visit(key, value, xt, found)
		removed = v.Op == record.Discard
		return v
	})
	if err != nil {
		return err
	}
	if removed {
		return c.stepIf(true)
	}
	c.key = e.key
	return c.stepIf(step)
}

// acceptCurrent visits the first live record from the cursor on that still exists when its key is
// locked.
func (c *Cursor) acceptCurrent(p *Pending, visit record.Visitor) (entry, error) {
	for {
		e, _, _, err := c.currentLive(nil)
		if err != nil {
			return entry{}, err
		}
		met := false
		err = c.db.modify(p, e.key, func(b *batch) error {
			return b.acceptLive(e.key, func(key, value []byte, xt int64, found bool) record.Verdict {
				met = true
				return visit(key, value, xt, found)
			})
		})
		if err != nil || met {
			return e, err
		}
	}
}

// On moves the cursor to another view of the same database, see Transaction.DB. It stays on its
// record.
func (c *Cursor) On(d *DB) {
	if c.db != d {
		c.set = c.valid()
		c.db, c.generation = d, d.generation.Load()
	}
}
