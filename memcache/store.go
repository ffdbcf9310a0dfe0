package memcache

import (
	"encoding/binary"
	"errors"

	"gotycoon/access"
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

// storage is what a connection does with items and messages. All three protocols share it.
type storage struct {
	consumer
	value  []byte // scratch: a value that was read, or is to be stored
	held   int    // bytes of value that the account has given
	number []byte // scratch: text of numbers
}

// change describes a storage operation.
type change struct {
	mode      mode
	key, data []byte
	room      []byte // large data between record.Headroom and flagBytes more bytes; nil: copied
	flags     uint32
	xt        record.XT
	unique    uint64 // version that the item must have; 0: any version
	versioned bool   // the caller wants the new version
	vivify    bool   // append and prepend create a missing item
}

// store carries out a storage operation. If it stores nothing, it returns dberr.ErrDuplicate,
// dberr.ErrNoRecord or errChanged.
func (st *storage) store(ch change) (version uint64, err error) {
	// The right is checked again, since the data may have taken long to arrive.
	if err := st.io.Visitor.Key(access.Write, st.db, ch.key); err != nil {
		return 0, err
	}
	if ch.room != nil && st.s.queues == nil && ch.mode != modeAppend && ch.mode != modePrepend {
		version, err = st.storeInPlace(ch)
		st.countStore(&ch, err)
		return version, err
	}
	value := ch.data
	if st.s.opts.Flags {
		if err := st.holdCopy(value); err != nil {
			return 0, err
		}
		st.value = st.encode(st.value[:0], value, ch.flags)
		value = st.value
	}
	owed := &st.io.Owed
	switch {
	case st.s.queues != nil && ch.mode == modeSet:
		err = st.s.queues.put(owed, ch.key, value, ch.xt)
	case ch.unique != 0 || ch.versioned || ch.mode >= modeAppend:
		version, err = st.storeVersion(ch, value)
	case ch.mode == modeAdd:
		err = st.db.Add(owed, ch.key, value, ch.xt)
	case ch.mode == modeReplace:
		err = st.db.Replace(owed, ch.key, value, ch.xt)
	default:
		err = st.db.Set(owed, ch.key, value, ch.xt)
	}
	st.countStore(&ch, err)
	return version, err
}

// storeInPlace stores large data from where they are in the connection's buffer. The flags cover
// the first bytes of the next request; these bytes are put back when the flags are in the log.
func (st *storage) storeInPlace(ch change) (version uint64, err error) {
	room := ch.room[:len(ch.room)-flagBytes]
	if st.s.opts.Flags {
		room = ch.room
		behind := room[len(room)-flagBytes:]
		next := [flagBytes]byte(behind)
		binary.BigEndian.PutUint32(behind, ch.flags)
		defer func() {
			err = errors.Join(err, st.io.Flush())
			copy(behind, next[:])
		}()
	}
	owed := &st.io.Owed
	switch {
	case ch.unique != 0 || ch.versioned || ch.mode == modeCAS:
		return st.decideVersion(ch, room)
	case ch.mode == modeAdd:
		return 0, st.db.StoreInPlace(owed, ch.key, room, ch.xt, record.WhenNew)
	case ch.mode == modeReplace:
		return 0, st.db.StoreInPlace(owed, ch.key, room, ch.xt, record.WhenThere)
	}
	return 0, st.db.StoreInPlace(owed, ch.key, room, ch.xt, record.Anyway)
}

// decideVersion stores data in a room if the item is as ch wants it.
func (st *storage) decideVersion(ch change, room []byte) (version uint64, err error) {
	var refused error
	version, err = st.db.DecideIf(&st.io.Owed, ch.key, ch.wanted(), func(found bool) record.Verdict {
		if refused = st.refusal(ch, found); refused != nil {
			return record.Verdict{}
		}
		return record.Verdict{Op: record.Renew, Value: room[record.Headroom:], Room: room, XT: ch.xt}
	})
	if err = changed(err); err == nil {
		err = refused
	}
	return version, err
}

// wanted returns the version that the item must have, 0 for any: an item that must not be there is
// refused for being there.
func (ch *change) wanted() uint64 {
	if ch.mode == modeAdd {
		return 0
	}
	return ch.unique
}

// changed returns errChanged for an operation that wants another version than the item has.
func changed(err error) error {
	if errors.Is(err, dberr.ErrConflict) {
		return errChanged
	}
	return err
}

func (st *storage) countStore(ch *change, err error) {
	n := &st.s.counts
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

// storeVersion is store for operations that depend on the old item. value is the stored form of the
// new value.
func (st *storage) storeVersion(ch change, value []byte) (version uint64, err error) {
	var refused error
	version, err = st.db.AcceptIf(&st.io.Owed, ch.key, ch.wanted(), func(key, old []byte, _ int64, found bool) record.Verdict {
		if refused = st.refusal(ch, found); refused != nil {
			return record.Verdict{}
		}
		if found && (ch.mode == modeAppend || ch.mode == modePrepend) {
			if refused = st.holdCopy(old); refused != nil {
				return record.Verdict{}
			}
			st.join(ch, old)
			return record.Verdict{Op: record.Store, Value: st.value}
		}
		return record.Verdict{Op: record.Renew, Value: value, XT: ch.xt}
	})
	if err != nil {
		return 0, changed(err)
	}
	return version, refused
}

// refusal returns the reason why a storage operation stores nothing, or nil.
func (st *storage) refusal(ch change, found bool) error {
	switch {
	case !found && (ch.mode == modeReplace || ch.mode == modeCAS || ch.unique != 0):
		return dberr.ErrNoRecord
	case !found && (ch.mode == modeAppend || ch.mode == modePrepend) && !ch.vivify:
		return dberr.ErrNoRecord
	case found && ch.mode == modeAdd:
		return dberr.ErrDuplicate
	}
	return nil
}

// holdCopy takes the memory for a copy of a large value.
func (st *storage) holdCopy(value []byte) error {
	if len(value) <= keepRoom {
		return nil
	}
	return st.io.Hold(len(value))
}

// join makes the value of an append or prepend in c.value. The item keeps its flags.
func (st *storage) join(ch change, old []byte) {
	data, flags := st.decode(old)
	first, second := data, ch.data
	if ch.mode == modePrepend {
		first, second = second, first
	}
	st.value = append(make([]byte, 0, len(old)+len(ch.data)), first...)
	st.value = st.encode(st.value, second, flags)
}
