package script

import (
	"errors"
	"io"
	"os"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/keymatch"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// Methods on the database as a whole.

func dbCount(c call) int {
	h := c.handleOf(1)
	n := int64(-1)
	if !h.do(c, func(d *db.DB) (err error) {
		n, err = d.Count(h.pending())
		return err
	}) {
		n = -1
	}
	return c.pushNumber(float64(n))
}

func dbSize(c call) int {
	n := int64(-1)
	c.handleOf(1).do(c, func(d *db.DB) error {
		n = d.Size()
		return nil
	})
	return c.pushNumber(float64(n))
}

func dbPath(c call) int {
	h := c.handleOf(1)
	if h.db == nil {
		h.note(errNotOpen)
		return c.pushNil()
	}
	return c.pushBytes([]byte(h.db.Info().Path))
}

func dbStatus(c call) int {
	h := c.handleOf(1)
	var rows map[string]string
	if !h.do(c, func(d *db.DB) (err error) {
		rows, err = d.Status(h.pending())
		return err
	}) {
		return c.pushNil()
	}
	t := c.l.NewTable()
	for name, value := range rows {
		t.RawSetString(name, lua.LString(value))
	}
	c.l.Push(t)
	return 1
}

// processor returns a function that calls the script's file processor with path, count and size. It
// returns nil if the argument is no file processor.
func (c call) processor(i int) func(d *db.DB, path string) bool {
	v := c.l.Get(i)
	args := []lua.LValue{}
	if t, ok := v.(*lua.LTable); ok {
		v, args = t.RawGetString("process"), []lua.LValue{t}
	}
	if v.Type() != lua.LTFunction {
		return nil
	}
	return func(d *db.DB, path string) bool {
		n, _ := d.Count(c.s.owed) // an error is left to the operation itself
		results, err := c.protect(v, 1, append(args, lua.LString(path), lua.LNumber(n), lua.LNumber(d.Size()))...)
		return err == nil && lua.LVAsBool(results[0])
	}
}

// dbSynchronize writes the database to its file. A file processor may then copy the file.
func dbSynchronize(c call) int {
	hard, process := c.flag(2, false), c.processor(3)
	return c.pushBool(c.handleOf(1).visit(c, func(d *db.DB) error {
		if process == nil {
			return d.Synchronize(hard, nil)
		}
		return d.Synchronize(hard, func(path string, _ ulog.Stamp) error {
			if !process(d, path) {
				return dberr.ErrPostproc
			}
			return nil
		})
	}))
}

var errProcess error = &dberr.Error{Code: dberr.LogicInconsistency, Message: "processing failed"}

// dbOccupy runs a file processor while no visitor and no transaction of another script call is at
// work.
func dbOccupy(c call) int {
	process := c.processor(3)
	return c.pushBool(c.handleOf(1).visit(c, func(d *db.DB) error {
		if process != nil && !process(d, d.Info().Path) {
			return errProcess
		}
		return nil
	}))
}

// dbCopy copies the file of the database, or that which is made of a database in an engine.
func dbCopy(c call) int {
	dest := c.text(2)
	return c.pushBool(c.handleOf(1).do(c, func(d *db.DB) error {
		if !d.Info().OnDisk && !d.Info().Shared {
			return dberr.ErrPostproc
		}
		return d.Synchronize(false, func(path string, _ ulog.Stamp) error { return copyFile(dest, path) })
	}))
}

func copyFile(dest, source string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dest, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close() // the copy is incomplete anyway
		return err
	}
	return out.Close()
}

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
		return keymatch.MatchPrefix(d, c.s.leash.ask, p, prefix, limit, c.s.keysRoom())
	})
}

func dbMatchRegex(c call) int {
	regex, limit := c.text(2), c.int(3, -1)
	return matches(c, func(d *db.DB, p *db.Pending) ([][]byte, error) {
		return keymatch.MatchRegex(d, c.s.leash.ask, p, regex, limit, c.s.keysRoom())
	})
}

// dbMatchSimilar finds similar keys. Without a distance every key matches, in the order of the
// database.
func dbMatchSimilar(c call) int {
	origin, distance, utf, limit := c.bytes(2), c.int(3, -1), c.flag(4, false), c.int(5, -1)
	return matches(c, func(d *db.DB, p *db.Pending) ([][]byte, error) {
		if distance < 0 {
			return keymatch.MatchPrefix(d, c.s.leash.ask, p, nil, limit, c.s.keysRoom())
		}
		return keymatch.MatchSimilar(d, c.s.leash.ask, p, origin, distance, utf, limit, c.s.keysRoom())
	})
}

// Modes of merge.
const mergeSet, mergeAdd, mergeReplace, mergeAppend = 0, 1, 2, 3

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
	if errors.Is(err, dberr.ErrDuplicate) || errors.Is(err, dberr.ErrNoRecord) {
		return nil // the record is left out
	}
	return err
}

// absoluteXT turns an absolute expiration time into an argument of an update.
func absoluteXT(xt int64) record.XT {
	if xt >= record.MaxXT {
		return record.Never
	}
	return record.XT(-xt)
}
