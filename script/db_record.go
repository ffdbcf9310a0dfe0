package script

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/db"
	"gotycoon/db/record"
)

// Methods on one record.

// store serves set, add, replace and append.
func store(c call, op func(d *db.DB, p *db.Pending, key, value []byte, xt record.XT) error) int {
	h := c.handleOf(1)
	key, value, xt := c.bytes(2), c.bytes(3), c.xt(4)
	return c.pushBool(h.do(c, func(d *db.DB) error { return op(d, h.pending(), key, value, xt) }))
}

func dbSet(c call) int     { return store(c, (*db.DB).Set) }
func dbAdd(c call) int     { return store(c, (*db.DB).Add) }
func dbReplace(c call) int { return store(c, (*db.DB).Replace) }
func dbAppend(c call) int  { return store(c, (*db.DB).Append) }

func dbRemove(c call) int {
	h := c.handleOf(1)
	key := c.bytes(2)
	return c.pushBool(h.do(c, func(d *db.DB) error { return d.Remove(h.pending(), key) }))
}

func dbClear(c call) int {
	h := c.handleOf(1)
	return c.pushBool(h.do(c, func(d *db.DB) error { return d.Clear(h.pending()) }))
}

// found pushes value and expiration time, or nil if ok is false.
func found(c call, ok bool, value []byte, xt int64) int {
	if !ok {
		return c.pushNil()
	}
	c.pushBytes(value)
	return 1 + c.pushNumber(float64(xt))
}

func dbGet(c call) int   { return c.fetch((*db.DB).Get) }
func dbSeize(c call) int { return c.fetch((*db.DB).Seize) }

// fetch pushes the value and expiration time of a record that read returns, or nil for none.
func (c call) fetch(read func(*db.DB, *db.Pending, []byte, []byte) ([]byte, int64, error)) int {
	h := c.handleOf(1)
	key := c.bytes(2)
	var value []byte
	var xt int64
	ok := h.do(c, func(d *db.DB) (err error) {
		value, xt, err = read(d, h.pending(), nil, key)
		return err
	})
	return found(c, ok, value, xt)
}

func dbCheck(c call) int {
	h := c.handleOf(1)
	key := c.bytes(2)
	size := -1
	if !h.do(c, func(d *db.DB) (err error) {
		size, _, err = d.Check(h.pending(), key)
		return err
	}) {
		size = -1
	}
	return c.pushNumber(float64(size))
}

func dbIncrement(c call) int {
	h := c.handleOf(1)
	key, num, xt := c.bytes(2), c.int(3, 0), c.xt(5)
	orig := int64(0)
	switch f := c.float(4); {
	case math.IsInf(f, 1):
		orig = math.MaxInt64
	case math.IsInf(f, -1):
		orig = math.MinInt64
	default:
		orig = cInt64(f)
	}
	var sum int64
	ok := h.do(c, func(d *db.DB) (err error) {
		sum, err = d.Increment(h.pending(), key, num, orig, xt)
		return err
	})
	if !ok {
		return c.pushNil()
	}
	return c.pushNumber(float64(sum))
}

func dbIncrementDouble(c call) int {
	h := c.handleOf(1)
	key, num, orig, xt := c.bytes(2), c.float(3), c.float(4), c.xt(5)
	var sum float64
	ok := h.do(c, func(d *db.DB) (err error) {
		sum, err = d.IncrementDouble(h.pending(), key, num, orig, xt)
		return err
	})
	if !ok {
		return c.pushNil()
	}
	return c.pushNumber(sum)
}

// dbCas compares and swaps. A nil old value means that there must be no record; a nil new value
// removes the record.
func dbCas(c call) int {
	h := c.handleOf(1)
	key, oval, nval, xt := c.bytes(2), c.optional(3), c.optional(4), c.xt(5)
	return c.pushBool(h.do(c, func(d *db.DB) error { return d.CAS(h.pending(), key, oval, nval, xt) }))
}

// optional returns a string argument, or nil if the argument is nil or absent. An empty string
// gives an empty slice.
func (c call) optional(i int) []byte {
	if !c.has(i) {
		return nil
	}
	return append([]byte{}, c.text(i)...)
}

// Methods on many records.

func dbSetBulk(c call) int {
	h := c.handleOf(1)
	t, xt, atomic := c.table(2), c.xt(3), c.flag(4, true)
	var list []db.Record
	for key, value := t.Next(lua.LNil); key != lua.LNil; key, value = t.Next(key) {
		k, ok := bulkValue(key)
		v, alsoOK := bulkValue(value)
		if ok && alsoOK {
			list = append(list, db.Record{Key: []byte(k), Value: []byte(v), XT: xt})
		}
	}
	n := 0
	if !h.do(c, func(d *db.DB) (err error) {
		n, err = d.SetBulk(h.pending(), list, atomic)
		return err
	}) {
		n = -1
	}
	return c.pushNumber(float64(n))
}

func dbRemoveBulk(c call) int {
	h := c.handleOf(1)
	keys, atomic := c.texts(2), c.flag(3, true)
	n := 0
	if !h.do(c, func(d *db.DB) (err error) {
		n, err = d.RemoveBulk(h.pending(), keys, atomic)
		return err
	}) {
		n = -1
	}
	return c.pushNumber(float64(n))
}

func dbGetBulk(c call) int {
	h := c.handleOf(1)
	keys, atomic := c.texts(2), c.flag(3, true)
	t := c.l.NewTable()
	for again := false; ; again = true {
		size, short := int64(0), false
		ok := h.do(c, func(d *db.DB) error {
			return d.GetBulk(h.pending(), keys, atomic, func(i int, value []byte, _ int64) {
				size += int64(len(value))
				// The collector must not be waited for under the locks of the keys.
				if short = short || !again && !c.s.room.has(int64(len(value))); !short {
					t.RawSetString(string(keys[i]), c.s.room.text(string(value)))
				}
			})
		})
		switch {
		case !ok:
			return c.pushNil()
		case !short:
			c.l.Push(t)
			return 1
		}
		t = c.l.NewTable()
		c.s.reserve(c.l, float64(size))
	}
}
