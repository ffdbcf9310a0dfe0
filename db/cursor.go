package db

import (
	"bytes"
	"errors"

	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/record"
	"gotycoon/db/store"
)

// Cursor is a place in a database: a remembered key. It holds nothing of the database, so an idle
// cursor costs nothing. Where records come and go, the cursor is on the first record at or after
// its key. A cursor belongs to one goroutine.
type Cursor struct {
	// ends a long way over records that have expired; the cursor then is where it has come to
	Heed Heed

	db         *DB
	key        []byte
	set        bool
	backward   bool   // direction of the last move
	generation uint64 // clears of the database when the cursor was set
}

// NewCursor returns a cursor that is not set on any record.
func (d *DB) NewCursor() *Cursor { return &Cursor{db: d} }

// seen adds to p what a reply must wait for that tells where the cursor is, or that it is on no
// record. err is the operation's own error.
func (c *Cursor) seen(p *Pending, err error) error {
	if owed := c.db.oweAll(p); owed != nil {
		return owed
	}
	return err
}

// moveTo sets the cursor on the first record from a place, or unsets it.
func (c *Cursor) moveTo(from store.Start) error {
	from.Ask = c.Heed.Asking()
	e, ok, err := c.db.seek(&glance{}, from)
	c.set = ok && err == nil
	if err != nil {
		return err
	}
	if !ok {
		return dberr.ErrNoRecord
	}
	c.key, c.generation = e.key, c.db.generation.Load()
	return nil
}

// valid reports whether the cursor is set. A clear of the database unsets it.
func (c *Cursor) valid() bool {
	if c.generation != c.db.generation.Load() {
		c.set = false
	}
	return c.set
}

// Jump sets the cursor on the first record.
func (c *Cursor) Jump(p *Pending) error {
	c.db.sweeper.touch(readScore)
	c.backward = false
	return c.seen(p, c.moveTo(store.Start{Edge: true}))
}

// JumpKey sets the cursor on the record of key; in an ordered database on the next record when key
// has none.
func (c *Cursor) JumpKey(p *Pending, key []byte) error {
	c.db.sweeper.touch(readScore)
	c.backward = false
	if c.db.expr.Kind.Ordered() {
		return c.seen(p, c.moveTo(store.Start{Key: key, Inclusive: true}))
	}
	return c.seen(p, c.moveExactly(key))
}

// moveExactly sets the cursor on the record of key, expired or not.
func (c *Cursor) moveExactly(key []byte) error {
	c.set = false
	_, found, err := c.db.records().Get(nil, key, &glance{})
	if err != nil {
		return systemError(err)
	}
	if !found {
		return dberr.ErrNoRecord
	}
	c.set, c.key, c.generation = true, bytes.Clone(key), c.db.generation.Load()
	return nil
}

// JumpBack sets the cursor on the last record. Databases without an order return ErrNotImplemented.
func (c *Cursor) JumpBack(p *Pending) error {
	c.db.sweeper.touch(readScore)
	if !c.db.expr.Kind.Ordered() {
		return c.seen(p, c.refuseBackward())
	}
	c.backward = true
	return c.seen(p, c.moveTo(store.Start{Edge: true, Backward: true}))
}

// refuseBackward returns the error of a database without an order. The prototype hash looks for a
// first record before, as in the original.
func (c *Cursor) refuseBackward() error {
	if c.db.expr.Kind == expr.ProtoHash {
		if _, ok, err := c.db.seek(&glance{}, store.Start{Edge: true}); err != nil || !ok {
			c.set = false
			return orNoRecord(err)
		}
	}
	return dberr.ErrNotImplemented
}

func orNoRecord(err error) error {
	if err != nil {
		return err
	}
	return dberr.ErrNoRecord
}

// JumpBackKey sets the cursor on the record of key, or on the record before. Databases without an
// order return ErrNotImplemented, except the prototype hash, which finds the key itself.
func (c *Cursor) JumpBackKey(p *Pending, key []byte) error {
	c.db.sweeper.touch(readScore)
	switch {
	case c.db.expr.Kind == expr.ProtoHash:
		return c.seen(p, c.moveExactly(key))
	case !c.db.expr.Kind.Ordered():
		return dberr.ErrNotImplemented
	}
	c.backward = true
	return c.seen(p, c.moveTo(store.Start{Key: key, Inclusive: true, Backward: true}))
}

// Step moves to the next record. Past the last one it returns ErrNoRecord and the cursor is unset.
func (c *Cursor) Step(p *Pending) error { return c.seen(p, c.step()) }

func (c *Cursor) step() error {
	c.db.sweeper.touch(readScore)
	c.backward = false
	e, err := c.current(&glance{})
	if err != nil {
		return err
	}
	return c.moveTo(store.Start{Key: e.key})
}

// StepBack moves to the record before. Databases without an order return ErrNotImplemented.
func (c *Cursor) StepBack(p *Pending) error { return c.seen(p, c.stepBack()) }

func (c *Cursor) stepBack() error {
	c.db.sweeper.touch(readScore)
	kind := c.db.expr.Kind
	if !kind.Ordered() {
		if kind == expr.ProtoHash {
			c.set = false
		}
		return dberr.ErrNotImplemented
	}
	c.backward = true
	if kind == expr.ProtoTree && !c.valid() { // as in the original, it comes from behind the end
		return c.moveTo(store.Start{Edge: true, Backward: true})
	}
	if !c.valid() {
		return dberr.ErrNoRecord
	}
	if _, err := c.current(&glance{}); err != nil && !errors.Is(err, dberr.ErrNoRecord) {
		return err
	}
	// the last record may have been removed under the cursor: the key still counts
	return c.moveTo(store.Start{Key: c.key, Backward: true})
}

// current returns the record that the cursor is on.
func (c *Cursor) current(r store.Reader) (entry, error) {
	if !c.valid() {
		return entry{}, dberr.ErrNoRecord
	}
	e, ok, err := c.db.seek(r, store.Start{Key: c.key, Inclusive: true, Ask: c.Heed.Asking()})
	if err != nil {
		return entry{}, err
	}
	if !ok {
		c.set = false
		return entry{}, dberr.ErrNoRecord
	}
	c.key = e.key
	return e, nil
}

// advance moves one record; at the end the cursor is unset.
func (c *Cursor) advance(backward bool) error {
	return c.moveTo(store.Start{Key: c.key, Backward: backward})
}

// goesBack reports in which direction stepping options and removals move: that of the last move,
// but the prototype tree only knows forward there.
func (c *Cursor) goesBack() bool { return c.backward && c.db.expr.Kind != expr.ProtoTree }

// cursorSteps is how many records a cursor passes over before it asks whether it may go on.
const cursorSteps = 64

// currentLive returns the record that the cursor is on and skips expired records, in the direction
// of the last move. r is asked before a large value is copied; with nil, the beginning of a value
// is enough.
func (c *Cursor) currentLive(r store.Reader) (e entry, xt int64, value []byte, err error) {
	g := &glance{}
	for n := 1; ; n++ {
		if n%cursorSteps == 0 {
			if err := c.Heed.Now(); err != nil {
				return entry{}, 0, nil, err
			}
		}
		g.size = 0
		if e, err = c.current(g); err != nil {
			return entry{}, 0, nil, err
		}
		xt, value, live := c.db.SplitStored(e.stored)
		if live && g.size > 0 && r != nil { // it may be another one by now
			if e, err = c.current(r); err != nil {
				return entry{}, 0, nil, err
			}
			xt, value, live = c.db.SplitStored(e.stored)
		}
		if live {
			return e, xt, value, nil
		}
		if err := c.advance(c.backward); err != nil {
			return entry{}, 0, nil, err
		}
	}
}

// Get returns the record that the cursor is on; with step it then moves on. The slices are the
// caller's.
func (c *Cursor) Get(p *Pending, step bool) (key, value []byte, xt int64, err error) {
	key, value, xt, err = c.get(p, step)
	return key, value, xt, c.seen(p, err)
}

func (c *Cursor) get(r store.Reader, step bool) (key, value []byte, xt int64, err error) {
	c.db.sweeper.touch(readScore)
	e, xt, value, err := c.currentLive(r)
	if err != nil {
		return nil, nil, 0, err
	}
	if step && !c.goesBack() {
		c.key, c.set = e.next, e.next != nil
		return e.key, value, xt, nil
	}
	return e.key, value, xt, c.stepIf(step)
}

// stepIf moves on after a successful operation. Reaching the end is no error: the next call reports
// it.
func (c *Cursor) stepIf(step bool) error {
	if !step {
		return nil
	}
	if err := c.advance(c.goesBack()); err != nil && !errors.Is(err, dberr.ErrNoRecord) {
		return err
	}
	return nil
}

// GetKey is Get for the key alone.
func (c *Cursor) GetKey(p *Pending, step bool) (key []byte, err error) {
	key, _, _, err = c.get(nil, step)
	return key, c.seen(p, err)
}

// SetValue replaces the value of the record that the cursor is on; with step it then moves on.
func (c *Cursor) SetValue(p *Pending, value []byte, xt record.XT, step bool) error {
	_, _, _, err := c.change(p, &glance{}, func(b *batch, key []byte) { b.set(key, value, c.db.absolute(xt)) })
	if err == nil {
		err = c.stepIf(step)
	}
	return c.seen(p, err)
}

// Remove removes the record that the cursor is on and moves on.
func (c *Cursor) Remove(p *Pending) error {
	_, _, _, err := c.Seize(p)
	return err
}

// Seize removes the record that the cursor is on, returns it, and moves on.
func (c *Cursor) Seize(p *Pending) (key, value []byte, xt int64, err error) {
	key, value, xt, err = c.change(p, p, func(b *batch, key []byte) { b.remove(key) })
	if err == nil {
		err = c.stepIf(true)
	}
	if err = c.seen(p, err); err != nil {
		return nil, nil, 0, err
	}
	return key, value, xt, nil
}

// change commits an update of the live record that the cursor is on, and returns the record as it
// was. When another client removes the record in between, the cursor goes on to the following one.
// r is asked before a large value is copied.
func (c *Cursor) change(p *Pending, r store.Reader, update func(b *batch, key []byte)) (key, value []byte, xt int64, err error) {
	for {
		e, _, _, err := c.currentLive(nil)
		if err != nil {
			return nil, nil, 0, err
		}
		err = c.db.modify(p, e.key, how{}, func(b *batch) error {
			var found bool
			var err error
			if value, xt, found, err = b.live(r, nil, e.key); err != nil {
				return err
			}
			if !found {
				return dberr.ErrNoRecord
			}
			update(b, e.key)
			return nil
		})
		if !errors.Is(err, dberr.ErrNoRecord) {
			return e.key, value, xt, err
		}
	}
}

// Size returns the bytes of the key that the cursor remembers.
func (c *Cursor) Size() int { return cap(c.key) }

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
		met, err := c.db.acceptLive(p, e.key, visit)
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
