package memcache

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
)

// binaryGet serves get, getk, gat, gatk and their quiet forms. A quiet form gets no reply if there
// is no item.
func (c *conn) binaryGet(r *request, row *operation) bool {
	if c.s.queues != nil && c.io.Flush() != nil {
		return false
	}
	it, err := c.binaryFetch(r, row)
	if errors.Is(err, dberr.ErrNoRecord) && c.quiet {
		return true
	}
	a := &reply{status: c.statusOf(err), unique: it.version}
	if row.keyed {
		a.key = r.key
	}
	if err == nil {
		a.extras = binary.BigEndian.AppendUint32(nil, it.flags)
		a.value = it.data
	}
	if !c.sayBinary(r, a) {
		return false
	}
	if len(c.io.Out) > flushSize {
		return c.io.Flush() == nil
	}
	return true
}

// binaryFetch reads an item or a message. A quiet get does not wait for a message, because clients
// send many quiet gets at a time.
func (c *conn) binaryFetch(r *request, row *operation) (item, error) {
	switch {
	case row.base == opGAT:
		it, err := c.renew(r.key, c.expiry(int64(binary.BigEndian.Uint32(r.extras))))
		c.s.counts.get.count(err == nil)
		return it, err
	case c.s.queues == nil:
		return c.fetch(r.key, true)
	case c.quiet:
		return c.fetchMessage(r.key, time.Now())
	}
	return c.fetchMessage(r.key, c.deadline())
}

func (c *conn) binaryTouch(r *request) {
	it, err := c.renew(r.key, c.expiry(int64(binary.BigEndian.Uint32(r.extras))))
	c.sayBinary(r, &reply{status: c.statusOf(err), unique: it.version})
}

// binaryStore serves set, add, replace, append and prepend.
func (c *conn) binaryStore(r *request, base opcode) {
	ch := change{key: r.key, data: r.value, room: r.room, unique: r.unique, versioned: true, xt: record.Never}
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
	if len(r.extras) > 0 {
		ch.flags = binary.BigEndian.Uint32(r.extras)
		ch.xt = c.expiry(int64(binary.BigEndian.Uint32(r.extras[4:])))
	}
	if len(ch.data) > maxValue {
		c.sayBinary(r, &reply{status: statusTooLarge})
		return
	}
	version, err := c.store(ch)
	status := c.statusOf(err)
	if status == statusNotFound && ch.mode >= modeAppend {
		status = statusNotStored
	}
	c.answerBinary(r, &reply{status: status, unique: version})
}

// binaryAdd serves incr and decr. If there is no item, it stores the initial value, unless the
// expiration time is all ones.
func (c *conn) binaryAdd(r *request, down bool) {
	xt := binary.BigEndian.Uint32(r.extras[16:])
	a := addition{key: r.key, down: down, unique: r.unique, create: xt != math.MaxUint32, xt: c.expiry(int64(xt)),
		delta: binary.BigEndian.Uint64(r.extras), initial: binary.BigEndian.Uint64(r.extras[8:])}
	sum, version, _, err := c.add(a)
	reply := &reply{status: c.statusOf(err), unique: version}
	if err == nil {
		reply.value = binary.BigEndian.AppendUint64(nil, sum)
	}
	c.answerBinary(r, reply)
}

// binaryService serves requests that are not about an item. It reports whether the connection stays
// open.
func (c *conn) binaryService(r *request, base opcode) bool {
	switch base {
	case opQuit:
		c.answerBinary(r, &reply{})
		return false
	case opFlush:
		delay := int64(0)
		if len(r.extras) == 4 {
			delay = int64(binary.BigEndian.Uint32(r.extras))
		}
		c.answerBinary(r, &reply{status: c.statusOf(c.clear(delay))})
	case opVersion:
		c.sayBinary(r, &reply{value: []byte(ModernVersion)})
	case opStat:
		c.binaryStats(r)
	default: // noop, verbosity
		c.sayBinary(r, &reply{})
	}
	return true
}

// binaryStats sends one reply for each row, and an empty reply at the end.
func (c *conn) binaryStats(r *request) {
	family := string(r.key)
	if family == "reset" {
		c.s.counts.reset()
		c.sayBinary(r, &reply{})
		return
	}
	rows, known, err := c.rows(family)
	switch {
	case err != nil:
		c.sayBinary(r, &reply{status: c.statusOf(err)})
		return
	case !known:
		c.sayBinary(r, &reply{status: statusNotFound})
		return
	}
	for _, row := range rows {
		c.sayBinary(r, &reply{key: []byte(row.name), value: []byte(row.value)})
	}
	c.sayBinary(r, &reply{})
}
