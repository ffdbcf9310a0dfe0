package memcache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
)

// serveBinary serves one message. It reports whether the connection stays open.
func (c *conn) serveBinary() bool {
	c.quiet = false
	if !c.need(headerSize) {
		return false
	}
	head := [headerSize]byte(c.io.Buffered())
	x := exchange{c, request{op: opcode(head[1]), opaque: [4]byte(head[12:])}}
	body := int64(binary.BigEndian.Uint32(head[8:]))
	if body > maxRequest-headerSize || c.io.Visitor != nil && body > maxCredentials && c.io.Visitor.Enter() != nil {
		x.say(&reply{status: statusTooLarge})
		return false
	}
	if err := c.io.Need(headerSize + int(body)); err != nil {
		if errors.Is(err, netio.ErrBusy) || errors.Is(err, netio.ErrTooLarge) {
			x.say(&reply{status: statusNoMemory})
		}
		return false
	}
	message := c.io.Buffered()[:headerSize+body]
	room := c.io.Room(len(message), 0, flagBytes)
	c.io.Advance(len(message))
	r, ok := parseRequest(message)
	x.r, x.r.message = r, message
	if !ok {
		x.say(&reply{status: statusInvalid})
		return false
	}
	if len(r.value) >= largeValue && room != nil {
		x.r.key = bytes.Clone(r.key) // its end is in the way
		x.r.room = room[len(message)-len(r.value)-record.Headroom:]
	}
	keep := x.execute()
	x.measure()
	if x.io.Owes() {
		x.io.Answered(unconfirmedBinary(x.r.op, x.r.opaque))
	}
	return keep
}

// execute serves a request. It reports whether the connection stays open.
func (x *exchange) execute() bool {
	if x.s.opts.Forward != nil && x.logsIn() && x.belongs() && !isRemote(x.io.Visitor.Enter()) && x.move(x.r.message) {
		return false
	}
	if x.io.Visitor != nil {
		if done, keep := x.guard(); done {
			return keep
		}
		x.asked, x.io.Owed.Rights = asked{binary: true, request: x.r}, owner{x.conn}
	}
	row, known := x.r.op.operation()
	if !known {
		x.logCommand([]byte("bin_unknown"))
		x.say(&reply{status: statusUnknown})
		return true
	}
	if x.s.logs() {
		x.logCommand([]byte("bin_" + row.name))
	}
	switch {
	case !row.fits(&x.r):
		x.say(&reply{status: statusInvalid})
		return true
	case row.writes && x.s.opts.ReadOnly:
		x.say(&reply{status: statusDenied})
		return true
	case x.s.opts.Forward != nil && x.belongs() && x.move(x.r.message):
		return false
	}
	x.quiet = row.quiet
	switch row.base {
	case opGet, opGAT:
		return x.get(&row)
	case opTouch:
		x.touchItem()
	case opDelete:
		x.answer(&reply{status: x.statusOf(x.remove(x.r.key, x.r.unique))})
	case opIncrement, opDecrement:
		x.addTo(row.base == opDecrement)
	case opSet, opAdd, opReplace, opAppend, opPrepend:
		x.storeItem(row.base)
	default:
		return x.service(row.base)
	}
	return true
}

// get serves get, getk, gat, gatk and their quiet forms. A quiet form gets no reply if there
// is no item.
func (x *exchange) get(row *operation) bool {
	if x.s.queues != nil && x.io.Flush() != nil {
		return false
	}
	it, err := x.fetchItem(row)
	if errors.Is(err, dberr.ErrNoRecord) && x.quiet {
		return true
	}
	if x.s.opts.Forward.Away() && row.base == opGet {
		it.version = foreignUnique
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

// fetchItem reads an item or a message. A quiet get does not wait for a message, because clients
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

// storeItem serves set, add, replace, append and prepend.
func (x *exchange) storeItem(base opcode) {
	ch := change{key: x.r.key, data: x.r.value, room: x.r.room, unique: x.r.unique, versioned: true, xt: record.Never}
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

// addTo serves incr and decr. If there is no item, it stores the initial value, unless the
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

// service serves requests that are not about an item. It reports whether the connection stays
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

// statRows sends one reply for each row, and an empty reply at the end.
func (x *exchange) statRows() {
	family := string(x.r.key)
	if family == familyReset {
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

// measure counts a message of the binary protocol.
func (x *exchange) measure() {
	if !x.io.Meter.Wanted() {
		return
	}
	row, _ := x.r.op.operation()
	x.conn.measure(row.name, metrics.Detail{Key: x.r.key, In: headerSize + len(x.r.extras) + len(x.r.key) + len(x.r.value), Out: len(x.io.Out)})
}
