package script

import (
	"errors"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
)

// openVisitor makes the classes Visitor and FileProcessor.
func (s *state) openVisitor(kt *lua.LTable) {
	k := &s.classes
	k.visitor, _ = s.class(kt, "Visitor", s.function("vis_new", 1, anyNumber, visNew), nil)
	k.nop, k.remove = s.userdata(nil), s.userdata(nil)
	k.visitor.RawSetString("NOP", k.nop)
	k.visitor.RawSetString("REMOVE", k.remove)
	k.processor, _ = s.class(kt, "FileProcessor", s.function("fproc_new", 1, anyNumber, processorNew), nil)
}

// visNew makes a visitor that changes nothing.
func visNew(c call) int {
	t := c.l.NewTable()
	for _, name := range []string{"visit_full", "visit_empty"} {
		t.RawSetString(name, c.s.function("vis_"+name, 0, anyNumber, func(c call) int {
			c.l.Push(c.s.classes.nop)
			return 1
		}))
	}
	c.l.Push(t)
	return 1
}

// processorNew makes a file processor that does nothing and succeeds.
func processorNew(c call) int {
	t := c.l.NewTable()
	t.RawSetString("process", c.s.function("fproc_process", 0, anyNumber, func(c call) int { return c.pushBool(true) }))
	c.l.Push(t)
	return 1
}

// visitorOf returns a visitor argument: a function, or a table with methods.
func (c call) visitorOf(i int) lua.LValue {
	v := c.l.Get(i)
	if v.Type() != lua.LTFunction && v.Type() != lua.LTTable {
		c.refuse()
	}
	return v
}

// visitor returns a db.Visitor that calls a visitor of the script. After an error of the script the
// record stays as it is.
func (c call) visitor(v lua.LValue) record.Visitor {
	return func(key, value []byte, xt int64, found bool) record.Verdict {
		args := []lua.LValue{lua.LString(key), lua.LNil}
		method := "visit_empty"
		if found {
			args = []lua.LValue{lua.LString(key), c.s.room.text(string(value)), lua.LNumber(xt)}
			method = "visit_full"
		}
		f := v
		if t, ok := v.(*lua.LTable); ok {
			if f = t.RawGetString(method); f.Type() != lua.LTFunction {
				return record.Verdict{}
			}
			if !found {
				args = args[:1]
			}
			args = append([]lua.LValue{t}, args...)
		}
		results, err := c.protect(f, 2, args...)
		if err != nil {
			return record.Verdict{}
		}
		return c.verdict(results[0], results[1])
	}
}

// verdict turns the results of a visitor into what happens to the record.
func (c call) verdict(result, xt lua.LValue) record.Verdict {
	if result == c.s.classes.remove {
		return record.Verdict{Op: record.Discard}
	}
	value, ok := text(result)
	if !ok {
		return record.Verdict{}
	}
	if seconds, ok := number(xt); ok {
		return record.Verdict{Op: record.Renew, Value: []byte(value), XT: record.XT(cInt64(seconds))}
	}
	return record.Verdict{Op: record.Store, Value: []byte(value)}
}

// around calls the method of a visitor that stands before or after all visits.
func (c call) around(v lua.LValue, method string) {
	if t, ok := v.(*lua.LTable); ok {
		if f := t.RawGetString(method); f.Type() == lua.LTFunction {
			_, _ = c.protect(f, 0, t) // an error is ignored, as in visits
		}
	}
}

// show calls a visitor that may not change the record.
func (c call) show(d *db.DB, p *db.Pending, key []byte, visit record.Visitor) error {
	value, xt, err := d.Get(p, nil, key)
	if err != nil && !errors.Is(err, dberr.ErrNoRecord) {
		return err
	}
	visit(key, value, xt, err == nil)
	return nil
}

func dbAccept(c call) int {
	h := c.handleOf(1)
	key, visit, writable := c.bytes(2), c.visitor(c.visitorOf(3)), c.flag(4, true)
	return c.pushBool(h.visit(c, func(d *db.DB) error {
		if !writable {
			return c.show(d, h.pending(), key, visit)
		}
		_, err := d.Accept(h.pending(), key, visit)
		return err
	}))
}

func dbAcceptBulk(c call) int {
	h := c.handleOf(1)
	keys, v, writable := c.texts(2), c.visitorOf(3), c.flag(4, true)
	visit := c.visitor(v)
	return c.pushBool(h.visit(c, func(d *db.DB) error {
		c.around(v, "visit_before")
		defer c.around(v, "visit_after")
		if writable {
			return d.AcceptBulk(h.pending(), keys, visit)
		}
		for _, key := range keys {
			if err := c.show(d, h.pending(), key, visit); err != nil {
				return err
			}
		}
		return nil
	}))
}

// dbIterate visits all records. Each record is locked during its own visit only.
func dbIterate(c call) int {
	h := c.handleOf(1)
	v, writable := c.visitorOf(2), c.flag(3, true)
	visit := c.visitor(v)
	more := func() bool { return c.s.leash.Err() == nil && c.s.stillRoom() }
	return c.pushBool(h.visit(c, func(d *db.DB) error {
		c.around(v, "visit_before")
		defer c.around(v, "visit_after")
		if writable {
			return d.Iterate(c.s.leash.ask, h.pending(), visit, more)
		}
		return d.Walk(c.s.leash.ask, h.pending(), func(key, value []byte, xt int64) bool {
			visit(key, value, xt, true)
			return more()
		})
	}))
}
