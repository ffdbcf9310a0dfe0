package memcache

import (
	"strconv"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
)

// fetch reads an item. Its data are valid until the next operation. It returns dberr.ErrNoRecord if
// there is no item.
func (st *storage) fetch(key []byte, versioned bool) (it item, err error) {
	it.key = key
	before := st.io.Owed.Taken()
	var stored []byte
	var xt int64
	if versioned {
		stored, xt, it.version, err = st.db.GetUnique(&st.io.Owed, st.value[:0], key)
	} else {
		stored, xt, err = st.db.Get(&st.io.Owed, st.value[:0], key)
	}
	if cap(stored) > cap(st.value) {
		st.value = stored[:0]
	}
	if n := st.io.Owed.Taken() - before; n > 0 {
		st.io.LetGo(st.held) // a smaller one, of another key
		st.held = n
	}
	st.s.counts.get.count(err == nil)
	if err != nil {
		return it, err
	}
	it.data, it.flags = st.decode(stored)
	it.xt = xt
	return it, nil
}

// remove removes an item, or deletes a message. unique is as in change.
func (st *storage) remove(key []byte, unique uint64) (err error) {
	switch {
	case st.s.queues != nil:
		err = st.finish(key)
	case unique == 0:
		err = st.db.Remove(&st.io.Owed, key)
	default:
		err = st.removeVersion(key, unique)
	}
	st.s.counts.remove.count(err == nil)
	return err
}

func (st *storage) removeVersion(key []byte, unique uint64) error {
	missing := false
	_, err := st.db.AcceptIf(&st.io.Owed, key, unique, func(_, _ []byte, _ int64, found bool) record.Verdict {
		missing = !found
		return record.Verdict{Op: record.Discard}
	})
	switch {
	case err != nil:
		return changed(err)
	case missing:
		return dberr.ErrNoRecord
	}
	return nil
}

// renew gives an item another expiration time, and returns the item as it was before.
func (st *storage) renew(key []byte, xt record.XT) (it item, err error) {
	missing := false
	var lack error
	it.version, err = st.db.Accept(&st.io.Owed, key, func(_, old []byte, was int64, found bool) record.Verdict {
		if missing = !found; missing {
			return record.Verdict{}
		}
		if lack = st.holdCopy(old); lack != nil {
			return record.Verdict{}
		}
		st.value = append(st.value[:0], old...)
		it.xt = was
		return record.Verdict{Op: record.Renew, Value: st.value, XT: xt}
	})
	switch {
	case err != nil:
	case missing:
		err = dberr.ErrNoRecord
	default:
		err = lack
	}
	st.s.counts.touch.count(err == nil)
	if err != nil {
		return it, err
	}
	it.key = key
	it.data, it.flags = st.decode(st.value)
	return it, nil
}

// addition is an increment or a decrement.
type addition struct {
	key     []byte
	delta   uint64
	down    bool
	create  bool      // store initial if there is no item
	initial uint64    // used with create
	xt      record.XT // used with create and renew
	renew   bool      // give an existing item the expiration time xt
	unique  uint64    // as in change
}

// add carries out an addition as memcached does: unsigned, wrapping at 64 bits; a decrement stops
// at 0.
func (st *storage) add(a addition) (sum, version uint64, xt int64, err error) {
	var refused error
	version, err = st.db.AcceptIf(&st.io.Owed, a.key, a.unique, func(key, old []byte, was int64, found bool) record.Verdict {
		xt = was
		sum, refused = st.sum(a, old, found)
		if refused != nil {
			return record.Verdict{}
		}
		st.number = strconv.AppendUint(st.number[:0], sum, 10)
		if !found {
			xt = record.MaxXT
			return record.Verdict{Op: record.Renew, Value: st.encode(nil, st.number, 0), XT: a.xt}
		}
		if a.renew {
			return record.Verdict{Op: record.Renew, Value: st.withFlagsOf(old), XT: a.xt}
		}
		return record.Verdict{Op: record.Store, Value: st.withFlagsOf(old)}
	})
	if err = changed(err); err == nil {
		err = refused
	}
	st.countAddition(a.down, err)
	return sum, version, xt, err
}

func (st *storage) countAddition(down bool, err error) {
	n := &st.s.counts.incr
	if down {
		n = &st.s.counts.decr
	}
	n.count(err == nil)
}

// sum returns the result of an addition to a stored value.
func (st *storage) sum(a addition, old []byte, found bool) (uint64, error) {
	switch {
	case !found && a.create:
		return a.initial, nil
	case !found:
		return 0, dberr.ErrNoRecord
	}
	data, _ := st.decode(old)
	n, ok := counter(data)
	switch {
	case !ok:
		return 0, errNotNumber
	case !a.down:
		return n + a.delta, nil
	case a.delta > n:
		return 0, nil
	}
	return n - a.delta, nil
}

// withFlagsOf returns c.number as a stored value with the flags of another stored value.
func (st *storage) withFlagsOf(old []byte) []byte {
	data, _ := st.decode(old)
	return append(append([]byte(nil), st.number...), old[len(data):]...)
}

// addClassic is add by the original's rules: signed, with 0 for every negative sum; of the stored
// value the leading digits count.
func (st *storage) addClassic(key []byte, delta int64, down bool) (sum int64, err error) {
	missing := false
	_, err = st.db.Accept(&st.io.Owed, key, func(_, old []byte, _ int64, found bool) record.Verdict {
		if missing = !found; missing {
			return record.Verdict{}
		}
		data, _ := st.decode(old)
		sum = max(0, leadingInt(data)+delta)
		st.number = strconv.AppendInt(st.number[:0], sum, 10)
		return record.Verdict{Op: record.Store, Value: st.withFlagsOf(old)}
	})
	if err == nil && missing {
		err = dberr.ErrNoRecord
	}
	st.countAddition(down, err)
	return sum, err
}
