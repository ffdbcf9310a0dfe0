package script

import (
	"io"
	"os"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/db"
	"gotycoon/db/dberr"
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
	return c.pushBytes([]byte(h.db.Path()))
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

// processor returns what is called with path, count and size, nil where the argument is none.
func (c call) processor(i int) func(d *db.DB) bool {
	v := c.l.Get(i)
	args := []lua.LValue{}
	if t, ok := v.(*lua.LTable); ok {
		v, args = t.RawGetString("process"), []lua.LValue{t}
	}
	if v.Type() != lua.LTFunction {
		return nil
	}
	return func(d *db.DB) bool {
		n, _ := d.Count(c.s.owed) // what cannot be counted now fails elsewhere
		results, err := c.protect(v, 1, append(args, lua.LString(d.Path()), lua.LNumber(n), lua.LNumber(d.Size()))...)
		return err == nil && lua.LVAsBool(results[0])
	}
}

// dbSynchronize brings the database to its file. The processor may copy that.
func dbSynchronize(c call) int {
	hard, process := c.flag(2, false), c.processor(3)
	return c.pushBool(c.handleOf(1).visit(c, func(d *db.DB) error {
		if process == nil {
			return d.Synchronize(hard, nil)
		}
		return d.Synchronize(hard, func(string, ulog.Stamp) error {
			if !process(d) {
				return dberr.ErrPostproc
			}
			return nil
		})
	}))
}

var errProcess error = &dberr.Error{Code: dberr.LogicInconsistency, Message: "processing failed"}

// dbOccupy runs a processor while no other script's visitor or transaction is at work.
func dbOccupy(c call) int {
	process := c.processor(3)
	return c.pushBool(c.handleOf(1).visit(c, func(d *db.DB) error {
		if process != nil && !process(d) {
			return errProcess
		}
		return nil
	}))
}

// dbCopy copies the file of the database.
func dbCopy(c call) int {
	dest := c.text(2)
	return c.pushBool(c.handleOf(1).do(c, func(d *db.DB) error {
		if !d.OnDisk() {
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
		_ = out.Close() // the copy is no good anyway
		return err
	}
	return out.Close()
}
