package memcache

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"gotycoon/db"
)

// binaryGet serves get, getk, gat, gatk and their quiet forms. A quiet form gets no reply if there
// is no item.
func (x *exchange) get(row *operation) bool {
	if x.s.queues != nil && x.io.Flush() != nil {
		return false
	}
	it, err := x.fetchItem(row)
	if errors.Is(err, db.ErrNoRecord) && x.quiet {
		return true
	}
	a := &reply{status: x.statusOf(err), unique: it.version}
	if row.keyed {
		a.key = x.r.key
	}
	if err == nil {
		a.extras = binary.BigEndian.AppendUint32(nil, it.flags)
		a.value = it.data
	}
	if !x.say(a) {
		return false
	}
	if len(x.io.Out) > flushSize {
		return x.io.Flush() == nil
	}
	return true
}

// binaryFetch reads an item or a message. A quiet get does not wait for a message, because clients
// send many quiet gets at a time.
func (x *exchange) fetchItem(row *operation) (item, error) {
	switch {
	case row.base == opGAT:
		it, err := x.renew(x.r.key, x.expiry(int64(binary.BigEndian.Uint32(x.r.extras))))
		x.s.counts.get.count(err == nil)
		return it, err
	case x.s.queues == nil:
		return x.fetch(x.r.key, true)
	case x.quiet:
		return x.fetchMessage(x.r.key, time.Now())
	}
	return x.fetchMessage(x.r.key, x.deadline())
}

func (x *exchange) touchItem() {
	it, err := x.renew(x.r.key, x.expiry(int64(binary.BigEndian.Uint32(x.r.extras))))
	x.say(&reply{status: x.statusOf(err), unique: it.version})
}

// binaryStore serves set, add, replace, append and prepend.
func (x *exchange) storeItem(base opcode) {
	ch := change{key: x.r.key, data: x.r.value, room: x.r.room, unique: x.r.unique, versioned: true, xt: db.Never}
	switch base {
	case opAdd:
		ch.mode = modeAdd
	case opReplace:
		ch.mode = modeReplace
	case opAppend:
		ch.mode = modeAppend
	case opPrepend:
		ch.mode = modePrepend
	}
	if len(x.r.extras) > 0 {
		ch.flags = binary.BigEndian.Uint32(x.r.extras)
		ch.xt = x.expiry(int64(binary.BigEndian.Uint32(x.r.extras[4:])))
	}
	if len(ch.data) > maxValue {
		x.say(&reply{status: statusTooLarge})
		return
	}
	version, err := x.store(ch)
	status := x.statusOf(err)
	if status == statusNotFound && ch.mode >= modeAppend {
		status = statusNotStored
	}
	x.answer(&reply{status: status, unique: version})
}

// binaryAdd serves incr and decr. If there is no item, it stores the initial value, unless the
// expiration time is all ones.
func (x *exchange) addTo(down bool) {
	xt := binary.BigEndian.Uint32(x.r.extras[16:])
	a := addition{key: x.r.key, down: down, unique: x.r.unique, create: xt != math.MaxUint32, xt: x.expiry(int64(xt)),
		delta: binary.BigEndian.Uint64(x.r.extras), initial: binary.BigEndian.Uint64(x.r.extras[8:])}
	sum, version, _, err := x.add(a)
	reply := &reply{status: x.statusOf(err), unique: version}
	if err == nil {
		reply.value = binary.BigEndian.AppendUint64(nil, sum)
	}
	x.answer(reply)
}

// binaryService serves requests that are not about an item. It reports whether the connection stays
// open.
func (x *exchange) service(base opcode) bool {
	switch base {
	case opQuit:
		x.answer(&reply{})
		return false
	case opFlush:
		delay := int64(0)
		if len(x.r.extras) == 4 {
			delay = int64(binary.BigEndian.Uint32(x.r.extras))
		}
		x.answer(&reply{status: x.statusOf(x.clear(delay))})
	case opVersion:
		x.say(&reply{value: []byte(ModernVersion)})
	case opStat:
		x.statRows()
	default: // noop, verbosity
		x.say(&reply{})
	}
	return true
}

// binaryStats sends one reply for each row, and an empty reply at the end.
func (x *exchange) statRows() {
	family := string(x.r.key)
	if family == "reset" {
		x.s.counts.reset()
		x.say(&reply{})
		return
	}
	rows, known, err := x.rows(family)
	switch {
	case err != nil:
		x.say(&reply{status: x.statusOf(err)})
		return
	case !known:
		x.say(&reply{status: statusNotFound})
		return
	}
	for _, row := range rows {
		x.say(&reply{key: []byte(row.name), value: []byte(row.value)})
	}
	x.say(&reply{})
}
