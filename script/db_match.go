package script

import (
	"errors"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
)

// Methods that look for keys.

// matches pushes the keys that find returns, or nil.
func matches(c call, find func(d *db.DB, p *db.Pending) ([][]byte, error)) int {
	h := c.handleOf(1)
	var keys [][]byte
	var failed error
	if !h.do(c, func(d *db.DB) error {
		keys, failed = find(d, h.pending())
		return failed
	}) {
		if errors.Is(failed, errMemory) {
			c.raise(failed.Error())
		}
		return c.pushNil()
	}
	return c.pushTexts(keys)
}

func dbMatchPrefix(c call) int {
	prefix, limit := c.bytes(2), c.int(3, -1)
	return matches(c, func(d *db.DB, p *db.Pending) ([][]byte, error) {
		return d.MatchPrefix(c.s.leash.ask, p, prefix, limit, c.s.keysRoom())
	})
}

func dbMatchRegex(c call) int {
	regex, limit := c.text(2), c.int(3, -1)
	return matches(c, func(d *db.DB, p *db.Pending) ([][]byte, error) {
		return d.MatchRegex(c.s.leash.ask, p, regex, limit, c.s.keysRoom())
	})
}

// dbMatchSimilar without a range finds every key, in the order of the database.
func dbMatchSimilar(c call) int {
	origin, distance, utf, limit := c.bytes(2), c.int(3, -1), c.flag(4, false), c.int(5, -1)
	return matches(c, func(d *db.DB, p *db.Pending) ([][]byte, error) {
		if distance < 0 {
			return d.MatchPrefix(c.s.leash.ask, p, nil, limit, c.s.keysRoom())
		}
		return d.MatchSimilar(c.s.leash.ask, p, origin, distance, utf, limit, c.s.keysRoom())
	})
}

// dbMerge adds the records of other databases.
func dbMerge(c call) int {
	h := c.handleOf(1)
	list, mode := c.table(2), c.int(3, mergeSet)
	var sources []*handle
	for i := range list.MaxN() {
		v := list.RawGetInt(i + 1)
		if v.Type().String() != "table" {
			continue
		}
		c.l.Push(v)
		sources = append(sources, c.handleOf(c.l.GetTop()))
		c.l.Pop(1)
	}
	ok := true
	for _, source := range sources {
		ok = ok && h.mergeFrom(c, source, mode)
	}
	return c.pushBool(ok)
}

func (h *handle) mergeFrom(c call, source *handle, mode int64) bool {
	ok := true
	walked := source.do(c, func(from *db.DB) error {
		return from.Walk(c.s.leash.ask, source.pending(), func(key, value []byte, xt int64) bool {
			c.s.leash.check(c.l)
			ok = h.do(c, func(d *db.DB) error { return mergeOne(d, h.pending(), key, value, absoluteXT(xt), mode) })
			return ok
		})
	})
	if !walked {
		h.code, h.message = source.code, source.message
	}
	return ok && walked
}

func mergeOne(d *db.DB, p *db.Pending, key, value []byte, xt record.XT, mode int64) (err error) {
	switch mode {
	case mergeAdd:
		err = d.Add(p, key, value, xt)
	case mergeReplace:
		err = d.Replace(p, key, value, xt)
	case mergeAppend:
		return d.Append(p, key, value, xt)
	default:
		return d.Set(p, key, value, xt)
	}
	if errors.Is(err, dberr.ErrDuplicate) || errors.Is(err, dberr.ErrNoRecord) { // is left out
		return nil
	}
	return err
}

// absoluteXT is an absolute expiration time as an argument.
func absoluteXT(xt int64) record.XT {
	if xt >= record.MaxXT {
		return record.Never
	}
	return record.XT(-xt)
}
