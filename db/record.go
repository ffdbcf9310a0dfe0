package db

import (
	"bytes"
	"math"

	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// Get returns the value of key, in the room behind dst where that is large enough, and the absolute
// expiration time in seconds, MaxXT for never. It returns ErrNoRecord for a record that does not
// exist or has expired.
func (d *DB) Get(p *Pending, dst, key []byte) (value []byte, xt int64, err error) {
	d.sweeper.touch(readScore)
	value, xt, found, err := d.read(p, dst, key)
	if err == nil {
		err = d.owe(p, key)
	}
	if err != nil {
		return nil, 0, err
	}
	if !found {
		return nil, 0, dberr.ErrNoRecord
	}
	return value, xt, nil
}

// Check returns the size of a value and its expiration time without the value.
func (d *DB) Check(p *Pending, key []byte) (size int, xt int64, err error) {
	d.sweeper.touch(readScore)
	b := d.newBatch()
	defer b.free()
	size, xt, found, err := b.look(key)
	if err == nil {
		err = d.owe(p, key)
	}
	if err == nil && !found {
		err = dberr.ErrNoRecord
	}
	if err != nil {
		return 0, 0, err
	}
	return size, xt, nil
}

// Set stores a record, new or not.
func (d *DB) Set(p *Pending, key, value []byte, xt record.XT) error {
	return d.storeOne(p, key, value, nil, xt, record.Anyway)
}

// Add stores a new record. It returns ErrDuplicate when the key has one.
func (d *DB) Add(p *Pending, key, value []byte, xt record.XT) error {
	return d.storeOne(p, key, value, nil, xt, record.WhenNew)
}

// Replace stores the value of an existing record. It returns ErrNoRecord when there is none.
func (d *DB) Replace(p *Pending, key, value []byte, xt record.XT) error {
	return d.storeOne(p, key, value, nil, xt, record.WhenThere)
}

// StoreInPlace is Set, Add or Replace, as w says, for a large value that the log and the store take
// without a copy: room is Headroom bytes, which are overwritten, and the value. Nobody may change
// room before p has been waited for.
func (d *DB) StoreInPlace(p *Pending, key, room []byte, xt record.XT, w record.When) error {
	return d.storeOne(p, key, room[record.Headroom:], room, xt, w)
}

// goesAhead reports whether log and store take a value of a size before its key is locked. In an
// open transaction, and in a text database, the stored form is not known that early. An engine
// takes values with their groups.
func (d *core) goesAhead(size int) bool {
	large := size >= memoryAhead
	if d.log != nil {
		large = d.log.TakesAhead(size)
	}
	return large && size <= record.MaxValueSize && d.expr.Kind != expr.Text && d.tx.Load() == nil && d.shared == nil
}

// storeOne stores one record. room is as for StoreInPlace, nil for a value that is copied.
func (d *core) storeOne(p *Pending, key, value, room []byte, xt record.XT, w record.When) error {
	if err := d.throttleFor(value); err != nil {
		return err
	}
	var e *early
	if d.goesAhead(len(value)) {
		var err error
		if e, err = d.goAhead(p, key, value, room, xt, w); err != nil {
			return err
		}
		defer e.end()
	}
	return d.modify(p, key, how{blind: w == record.Anyway, bytes: len(value)}, func(b *batch) error {
		target := key
		if w == record.Anyway {
			target = d.lines.target(key, value)
		} else {
			found, err := b.exists(key)
			switch {
			case err != nil:
				return err
			case w == record.WhenNew && found:
				return dberr.ErrDuplicate
			case w == record.WhenThere && !found:
				return dberr.ErrNoRecord
			case !found:
				target = d.lines.target(key, value)
			}
		}
		b.put(e, target, value, room, d.absolute(xt))
		return nil
	})
}

// Append puts value behind the value of a record, or stores a new record. The expiration time is
// set anew.
func (d *DB) Append(p *Pending, key, value []byte, xt record.XT) error {
	if err := d.throttleFor(value); err != nil {
		return err
	}
	return d.modify(p, key, how{bytes: len(value)}, func(b *batch) error {
		old, _, err := b.read(key)
		if err != nil {
			return err
		}
		b.setJoined(d.lines.target(key, value), old, value, d.absolute(xt))
		return nil
	})
}

// Touch gives a record another expiration time. It returns ErrNoRecord when there is none. The log
// has the results of operations, so the value is logged again.
func (d *DB) Touch(p *Pending, key []byte, xt record.XT) error {
	return d.modify(p, key, how{}, func(b *batch) error {
		value, found, err := b.read(key)
		if err == nil && !found {
			err = dberr.ErrNoRecord
		}
		if err == nil {
			b.set(key, value, d.absolute(xt))
		}
		return err
	})
}

// Remove removes a record. It returns ErrNoRecord when there is none; the removal is logged all the
// same, as in the original.
func (d *DB) Remove(p *Pending, key []byte) error {
	return d.modify(p, key, how{}, func(b *batch) error {
		found, err := b.exists(key)
		if err != nil {
			return err
		}
		b.remove(key)
		if !found {
			return dberr.ErrNoRecord
		}
		return nil
	})
}

// Seize removes the record of key and returns it as Get does.
func (d *DB) Seize(p *Pending, dst, key []byte) (value []byte, xt int64, err error) {
	err = d.modify(p, key, how{}, func(b *batch) error {
		var found bool
		value, xt, found, err = b.live(p, dst, key)
		if err != nil {
			return err
		}
		if !found {
			return dberr.ErrNoRecord
		}
		b.remove(key)
		return nil
	})
	return value, xt, err
}

// CAS compares the record with oval and, when they are equal, stores nval. A nil oval means that
// there must be no record; a nil nval removes the record. When the comparison fails, CAS returns
// ErrConflict.
func (d *DB) CAS(p *Pending, key, oval, nval []byte, xt record.XT) error {
	return d.modify(p, key, how{bytes: len(nval)}, func(b *batch) error {
		old, found, err := b.read(key)
		if err != nil {
			return err
		}
		if found != (oval != nil) || !bytes.Equal(old, oval) {
			return dberr.ErrConflict
		}
		switch {
		case nval != nil && !found:
			b.set(d.lines.target(key, nval), nval, d.absolute(xt))
		case nval != nil:
			b.set(key, nval, d.absolute(xt))
		case found:
			b.remove(key)
		}
		return nil
	})
}

// Increment adds num to a number stored in 8 bytes and returns the sum. A missing record counts as
// orig, with two exceptions: math.MinInt64 makes a missing record an error, and math.MaxInt64 sets
// the number to num, whether there is a record or not. A value that is no such number is ErrLogic.
func (d *DB) Increment(p *Pending, key []byte, num, orig int64, xt record.XT) (sum int64, err error) {
	err = d.examine(p, key, num == 0 && orig == record.OrigTry, func(b *batch) error {
		old, found, err := b.read(key)
		if err != nil {
			return err
		}
		var write bool
		if sum, write, err = record.AddInt(old, found, num, orig); write {
			value := record.EncodeInt(sum)
			b.set(d.lines.target(key, value[:]), value[:], d.absolute(xt))
		}
		return err
	})
	return sum, err
}

// IncrementDouble is Increment for numbers stored in 16 bytes. -Inf and +Inf have the meanings of
// MinInt64 and MaxInt64.
func (d *DB) IncrementDouble(p *Pending, key []byte, num, orig float64, xt record.XT) (sum float64, err error) {
	err = d.examine(p, key, num == 0 && math.IsInf(orig, -1), func(b *batch) error {
		old, found, err := b.read(key)
		if err != nil {
			return err
		}
		var stored []byte
		var write bool
		if sum, stored, write, err = record.AddDouble(old, found, num, orig); write {
			b.set(d.lines.target(key, stored), stored, d.absolute(xt))
		}
		return err
	})
	return sum, err
}

// Clear removes all records.
func (d *DB) Clear(p *Pending) error { return d.clear(p, ulog.Update{SID: d.sid}, nil, true) }

// clear removes all records on behalf of the server that from names, and puts the position f into
// the log with the clear. client says that a client asked for it; then the clear may become part of
// a shared transaction.
func (d *core) clear(p *Pending, from ulog.Update, f *ulog.Position, client bool) error {
	if err := d.clearable(client); err != nil {
		return err
	}
	if d.shared != nil {
		err := d.shared.clear(p, from, f)
		if err == nil {
			d.generation.Add(1)
		}
		return err
	}
	b := d.newBatch()
	defer b.free()
	b.keys.all()
	b.follow, b.master = f, !client
	if err := d.lockKeys(p, &b.keys, client); err != nil {
		return err
	}
	err := d.versions.addClear(b, from)
	if err == nil {
		err = d.commit(p, b)
	}
	if err == nil {
		d.generation.Add(1)
		d.lines.end = 0
	}
	d.stripes.unlock(&b.keys)
	if err != nil {
		return err
	}
	return d.waitUnlessOwed(p, b)
}
