package memcache

import (
	"encoding/binary"
	"errors"
	"strconv"
	"time"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
)

// mode is the kind of a storage command.
type mode int

const (
	modeSet mode = iota
	modeAdd
	modeReplace
	modeAppend
	modePrepend
	modeCAS // set if the item exists
)

// call returns the original's operation for the mode, as error replies name it.
func (m mode) call() string {
	switch m {
	case modeAdd:
		return "add"
	case modeReplace:
		return "replace"
	case modeSet:
		return "set"
	}
	return "accept"
}

// errChanged: the item has another version than the client expects.
var errChanged = errors.New("the item has been changed")

// errNotNumber: the item's value is not a number.
var errNotNumber = errors.New("cannot increment or decrement non-numeric value")

// item is a record in memcached's terms.
type item struct {
	key     []byte
	data    []byte
	flags   uint32
	xt      int64  // absolute expiration time in seconds, record.MaxXT for never
	version uint64 // 0 if it was not asked for
}

// flagBytes is the length of the flags behind a value.
const flagBytes = 4

// encode appends the stored form of a value: the data and, with Config.Flags, the flags as a
// big-endian number.
func (c *conn) encode(dst, data []byte, flags uint32) []byte {
	dst = append(dst, data...)
	if c.s.opts.Flags {
		dst = binary.BigEndian.AppendUint32(dst, flags)
	}
	return dst
}

// decode splits a stored value. A value too short for flags has the flags 0.
func (c *conn) decode(stored []byte) (data []byte, flags uint32) {
	n := len(stored) - flagBytes
	if !c.s.opts.Flags || n < 0 {
		return stored, 0
	}
	return stored[:n], binary.BigEndian.Uint32(stored[n:])
}

// expiry converts a client's expiration time: a number of seconds from now, or a Unix time if it is
// too large for that.
func (c *conn) expiry(n int64) record.XT {
	const longest = 1 << 24
	switch {
	case n == 0:
		return record.Never
	case n < 0 && c.modern:
		return -1 // expired already
	case n < 0:
		return record.Never
	case n <= longest:
		return record.XT(n)
	}
	return record.XT(-n)
}

// fetch reads an item. Its data are valid until the next operation. It returns dberr.ErrNoRecord if
// there is no item.
func (c *conn) fetch(key []byte, versioned bool) (it item, err error) {
	it.key = key
	if versioned {
		// The version is read before the value: an old version makes a later cas fail, which is
		// safe; a version newer than the value would let it overwrite an update that the client has
		// not seen.
		it.version = c.db.Unique(key)
	}
	before := c.io.Owed.Taken()
	stored, xt, err := c.db.Get(&c.io.Owed, c.value[:0], key)
	if cap(stored) > cap(c.value) {
		c.value = stored[:0]
	}
	if n := c.io.Owed.Taken() - before; n > 0 {
		c.io.LetGo(c.held) // a smaller one, of another key
		c.held = n
	}
	c.s.counts.get.count(err == nil)
	if err != nil {
		return it, err
	}
	it.data, it.flags = c.decode(stored)
	it.xt = xt
	return it, nil
}

// change describes a storage operation.
type change struct {
	mode      mode
	key, data []byte
	room      []byte // large data between record.Headroom bytes in front and flagBytes behind; nil: they are copied
	flags     uint32
	xt        record.XT
	unique    uint64 // version that the item must have; 0: any version
	versioned bool   // the caller wants the new version
	vivify    bool   // append and prepend create a missing item
}

// store carries out a storage operation. If it stores nothing, it returns dberr.ErrDuplicate,
// dberr.ErrNoRecord or errChanged.
func (c *conn) store(ch change) (version uint64, err error) {
	// The right is checked again, since the data may have taken long to arrive.
	if err := c.io.Visitor.Key(access.Write, c.db, ch.key); err != nil {
		return 0, err
	}
	if ch.room != nil && c.s.queues == nil && ch.mode != modeAppend && ch.mode != modePrepend {
		version, err = c.storeInPlace(ch)
		c.countStore(ch, err)
		return version, err
	}
	if err := c.holdCopy(ch.data); err != nil {
		return 0, err
	}
	c.value = c.encode(c.value[:0], ch.data, ch.flags)
	owed := &c.io.Owed
	switch {
	case c.s.queues != nil && ch.mode == modeSet:
		err = c.s.queues.put(owed, ch.key, c.value, ch.xt)
	case ch.unique != 0 || ch.versioned || ch.mode >= modeAppend:
		version, err = c.storeVersion(ch)
	case ch.mode == modeAdd:
		err = c.db.Add(owed, ch.key, c.value, ch.xt)
	case ch.mode == modeReplace:
		err = c.db.Replace(owed, ch.key, c.value, ch.xt)
	default:
		err = c.db.Set(owed, ch.key, c.value, ch.xt)
	}
	c.countStore(ch, err)
	return version, err
}

// storeInPlace stores large data from where they are in the connection's buffer. The flags lie over the beginning of what comes next, which
// is put back when the log has them.
func (c *conn) storeInPlace(ch change) (version uint64, err error) {
	room := ch.room[:len(ch.room)-flagBytes]
	if c.s.opts.Flags {
		room = ch.room
		behind := room[len(room)-flagBytes:]
		next := [flagBytes]byte(behind)
		binary.BigEndian.PutUint32(behind, ch.flags)
		defer func() {
			err = errors.Join(err, c.io.Flush())
			copy(behind, next[:])
		}()
	}
	owed := &c.io.Owed
	switch {
	case ch.unique != 0 || ch.versioned || ch.mode == modeCAS:
		return c.decideVersion(ch, room)
	case ch.mode == modeAdd:
		return 0, c.db.AddInPlace(owed, ch.key, room, ch.xt)
	case ch.mode == modeReplace:
		return 0, c.db.ReplaceInPlace(owed, ch.key, room, ch.xt)
	}
	return 0, c.db.SetInPlace(owed, ch.key, room, ch.xt)
}

// decideVersion stores data in a room if the item is as ch wants it.
func (c *conn) decideVersion(ch change, room []byte) (version uint64, err error) {
	var refused error
	version, err = c.db.DecideUnique(&c.io.Owed, ch.key, func(found bool) db.Verdict {
		if refused = c.refusal(ch, found); refused != nil {
			return db.Verdict{}
		}
		return db.Verdict{Op: db.Renew, Value: room[record.Headroom:], Room: room, XT: ch.xt}
	})
	if err == nil {
		err = refused
	}
	return version, err
}

func (c *conn) countStore(ch change, err error) {
	n := &c.s.counts
	if ch.mode != modeCAS && ch.unique == 0 {
		n.set.count(err == nil)
		return
	}
	switch {
	case errors.Is(err, errChanged):
		n.casBad.Add(1)
	default:
		n.cas.count(err == nil)
	}
}

// storeVersion is store for operations that depend on the old item. c.value holds the new value.
func (c *conn) storeVersion(ch change) (version uint64, err error) {
	var refused error
	version, err = c.db.AcceptUnique(&c.io.Owed, ch.key, func(key, old []byte, _ int64, found bool) db.Verdict {
		if refused = c.refusal(ch, found); refused != nil {
			return db.Verdict{}
		}
		if found && (ch.mode == modeAppend || ch.mode == modePrepend) {
			if refused = c.holdCopy(old); refused != nil {
				return db.Verdict{}
			}
			c.join(ch, old)
			return db.Verdict{Op: db.Store, Value: c.value}
		}
		return db.Verdict{Op: db.Renew, Value: c.value, XT: ch.xt}
	})
	if err != nil {
		return 0, err
	}
	return version, refused
}

// refusal returns the reason why a storage operation stores nothing, or nil.
func (c *conn) refusal(ch change, found bool) error {
	switch {
	case !found && (ch.mode == modeReplace || ch.mode == modeCAS || ch.unique != 0):
		return dberr.ErrNoRecord
	case !found && (ch.mode == modeAppend || ch.mode == modePrepend) && !ch.vivify:
		return dberr.ErrNoRecord
	case found && ch.mode == modeAdd:
		return dberr.ErrDuplicate
	case ch.unique != 0 && c.db.Unique(ch.key) != ch.unique:
		return errChanged
	}
	return nil
}

// holdCopy takes the memory for a copy of a large value.
func (c *conn) holdCopy(value []byte) error {
	if len(value) <= keepRoom {
		return nil
	}
	return c.io.Hold(len(value))
}

// join makes the value of an append or prepend in c.value. The item keeps its flags.
func (c *conn) join(ch change, old []byte) {
	data, flags := c.decode(old)
	first, second := data, ch.data
	if ch.mode == modePrepend {
		first, second = second, first
	}
	c.value = append(make([]byte, 0, len(old)+len(ch.data)), first...)
	c.value = c.encode(c.value, second, flags)
}

// remove removes an item, or deletes a message. unique is as in change.
func (c *conn) remove(key []byte, unique uint64) (err error) {
	switch {
	case c.s.queues != nil:
		err = c.finish(key)
	case unique == 0:
		err = c.db.Remove(&c.io.Owed, key)
	default:
		err = c.removeVersion(key, unique)
	}
	c.s.counts.remove.count(err == nil)
	return err
}

func (c *conn) removeVersion(key []byte, unique uint64) error {
	var refused error
	_, err := c.db.AcceptUnique(&c.io.Owed, key, func(key, _ []byte, _ int64, found bool) db.Verdict {
		switch {
		case !found:
			refused = dberr.ErrNoRecord
		case c.db.Unique(key) != unique:
			refused = errChanged
		default:
			return db.Verdict{Op: db.Discard}
		}
		return db.Verdict{}
	})
	if err != nil {
		return err
	}
	return refused
}

// renew gives an item another expiration time, and returns the item as it was before.
func (c *conn) renew(key []byte, xt record.XT) (it item, err error) {
	missing := false
	var lack error
	it.version, err = c.db.AcceptUnique(&c.io.Owed, key, func(_, old []byte, was int64, found bool) db.Verdict {
		if missing = !found; missing {
			return db.Verdict{}
		}
		if lack = c.holdCopy(old); lack != nil {
			return db.Verdict{}
		}
		c.value = append(c.value[:0], old...)
		it.xt = was
		return db.Verdict{Op: db.Renew, Value: c.value, XT: xt}
	})
	switch {
	case err != nil:
	case missing:
		err = dberr.ErrNoRecord
	default:
		err = lack
	}
	c.s.counts.touch.count(err == nil)
	if err != nil {
		return it, err
	}
	it.key = key
	it.data, it.flags = c.decode(c.value)
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
func (c *conn) add(a addition) (sum, version uint64, xt int64, err error) {
	var refused error
	version, err = c.db.AcceptUnique(&c.io.Owed, a.key, func(key, old []byte, was int64, found bool) db.Verdict {
		xt = was
		sum, refused = c.sum(a, old, found)
		if refused != nil {
			return db.Verdict{}
		}
		c.number = strconv.AppendUint(c.number[:0], sum, 10)
		if !found {
			xt = record.MaxXT
			return db.Verdict{Op: db.Renew, Value: c.encode(nil, c.number, 0), XT: a.xt}
		}
		if a.renew {
			return db.Verdict{Op: db.Renew, Value: c.withFlagsOf(old), XT: a.xt}
		}
		return db.Verdict{Op: db.Store, Value: c.withFlagsOf(old)}
	})
	if err == nil {
		err = refused
	}
	c.countAddition(a.down, err)
	return sum, version, xt, err
}

func (c *conn) countAddition(down bool, err error) {
	n := &c.s.counts.incr
	if down {
		n = &c.s.counts.decr
	}
	n.count(err == nil)
}

// sum returns the result of an addition to a stored value.
func (c *conn) sum(a addition, old []byte, found bool) (uint64, error) {
	switch {
	case !found && a.create:
		return a.initial, nil
	case !found:
		return 0, dberr.ErrNoRecord
	case a.unique != 0 && c.db.Unique(a.key) != a.unique:
		return 0, errChanged
	}
	data, _ := c.decode(old)
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
func (c *conn) withFlagsOf(old []byte) []byte {
	data, _ := c.decode(old)
	return append(append([]byte(nil), c.number...), old[len(data):]...)
}

// addClassic is add by the original's rules: signed, with 0 for every negative sum; of the stored
// value the leading digits count.
func (c *conn) addClassic(key []byte, delta int64, down bool) (sum int64, err error) {
	missing := false
	err = c.db.Accept(&c.io.Owed, key, func(_, old []byte, _ int64, found bool) db.Verdict {
		if missing = !found; missing {
			return db.Verdict{}
		}
		data, _ := c.decode(old)
		sum = max(0, leadingInt(data)+delta)
		c.number = strconv.AppendInt(c.number[:0], sum, 10)
		return db.Verdict{Op: db.Store, Value: c.withFlagsOf(old)}
	})
	if err == nil && missing {
		err = dberr.ErrNoRecord
	}
	c.countAddition(down, err)
	return sum, err
}

// ttl returns the seconds until an expiration time, -1 for never.
func (c *conn) ttl(xt int64) int64 {
	if xt == record.MaxXT {
		return -1
	}
	return max(0, xt-c.db.Now().Unix())
}

// deadline returns when a get that begins now stops waiting for messages.
func (c *conn) deadline() time.Time { return time.Now().Add(c.s.opts.QueueTimeout) }
