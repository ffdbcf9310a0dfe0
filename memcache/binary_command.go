package memcache

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
)

// opcode is the command of a binary request.
type opcode byte

const (
	opGet       opcode = 0x00
	opSet       opcode = 0x01
	opAdd       opcode = 0x02
	opReplace   opcode = 0x03
	opDelete    opcode = 0x04
	opIncrement opcode = 0x05
	opDecrement opcode = 0x06
	opQuit      opcode = 0x07
	opFlush     opcode = 0x08
	opGetQ      opcode = 0x09
	opNoop      opcode = 0x0a
	opVersion   opcode = 0x0b
	opGetK      opcode = 0x0c
	opGetKQ     opcode = 0x0d
	opAppend    opcode = 0x0e
	opPrepend   opcode = 0x0f
	opStat      opcode = 0x10
	opSetQ      opcode = 0x11
	opAddQ      opcode = 0x12
	opReplaceQ  opcode = 0x13
	opDeleteQ   opcode = 0x14
	opIncrQ     opcode = 0x15
	opDecrQ     opcode = 0x16
	opQuitQ     opcode = 0x17
	opFlushQ    opcode = 0x18
	opAppendQ   opcode = 0x19
	opPrependQ  opcode = 0x1a
	opVerbosity opcode = 0x1b
	opTouch     opcode = 0x1c
	opGAT       opcode = 0x1d
	opGATQ      opcode = 0x1e
	opGATK      opcode = 0x23
	opGATKQ     opcode = 0x24
)

// operation describes what an opcode does.
type operation struct {
	name   string
	base   opcode // the opcode without "quiet"
	quiet  bool   // no reply to a success; of a get, no reply if there is no item
	keyed  bool   // the reply repeats the key
	writes bool   // refused with opts=r
	extras [2]int // least and greatest length of the extras
	key    bool   // must have a key
	value  bool   // may have a value
}

// operation returns the description of an opcode; ok is false for unknown opcodes and those of
// SASL.
func (o opcode) operation() (row operation, ok bool) {
	switch o {
	case opGet, opGetQ, opGetK, opGetKQ:
		row = operation{name: "get", base: opGet, key: true, keyed: o == opGetK || o == opGetKQ}
		row.quiet = o == opGetQ || o == opGetKQ
	case opSet, opSetQ, opAdd, opAddQ, opReplace, opReplaceQ:
		row = operation{name: "set", base: o, writes: true, extras: [2]int{8, 8}, key: true, value: true}
		if o >= opSetQ {
			row.base, row.quiet = opSet+(o-opSetQ), true
		}
	case opAppend, opAppendQ, opPrepend, opPrependQ:
		row = operation{name: "append", base: o, writes: true, key: true, value: true}
		if o >= opAppendQ {
			row.base, row.quiet = opAppend+(o-opAppendQ), true
		}
	case opDelete, opDeleteQ:
		row = operation{name: "delete", base: opDelete, quiet: o == opDeleteQ, writes: true, key: true}
	case opIncrement, opDecrement, opIncrQ, opDecrQ:
		row = operation{name: "incr", base: o, writes: true, extras: [2]int{20, 20}, key: true}
		if o >= opIncrQ {
			row.base, row.quiet = opIncrement+(o-opIncrQ), true
		}
	case opTouch:
		row = operation{name: "touch", base: o, writes: true, extras: [2]int{4, 4}, key: true}
	case opGAT, opGATQ, opGATK, opGATKQ:
		row = operation{name: "gat", base: opGAT, writes: true, extras: [2]int{4, 4}, key: true, keyed: o >= opGATK}
		row.quiet = o == opGATQ || o == opGATKQ
	default:
		return o.service()
	}
	return row, true
}

// service is operation for opcodes that are not about an item.
func (o opcode) service() (row operation, ok bool) {
	switch o {
	case opQuit, opQuitQ:
		row = operation{name: "quit", base: opQuit, quiet: o == opQuitQ}
	case opFlush, opFlushQ:
		row = operation{name: "flush", base: opFlush, quiet: o == opFlushQ, writes: true, extras: [2]int{0, 4}}
	case opNoop:
		row = operation{name: "noop", base: o}
	case opVersion:
		row = operation{name: "version", base: o}
	case opStat:
		row = operation{name: "stat", base: o}
	case opVerbosity:
		row = operation{name: "verbosity", base: o, extras: [2]int{4, 4}}
	default:
		return row, false
	}
	return row, true
}

// fits reports whether a request has the parts that its operation needs.
func (row *operation) fits(r *request) bool {
	return len(r.extras) >= row.extras[0] && len(r.extras) <= row.extras[1] &&
		(len(r.key) > 0 || !row.key) && (len(r.value) == 0 || row.value)
}

// execute serves a request. It reports whether the connection stays open.
func (x *exchange) execute() bool {
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
