package script

import (
	lua "github.com/yuin/gopher-lua"

	"gotycoon/db"
)

// cursor is the Go side of a cursor object.
type cursor struct {
	h  *handle
	at *db.Cursor
	of *db.DB // the database that at was made for
}

// openCursor makes the class Cursor.
func (s *state) openCursor(kt *lua.LTable) {
	k := &s.classes
	k.cursor, k.cursorMeta = s.class(kt, "Cursor", s.function("cur_new", 2, 2, curNew), map[string]*lua.LFunction{
		"__tostring": s.function("cur_tostring", 1, anyNumber, curString),
		"__call":     s.function("cur_call", 1, anyNumber, curCall),
	})
	for _, m := range []method{
		{"disable", 1, 1, curDisable}, {"accept", 2, 4, curAccept}, {"set_value", 2, 4, curSetValue},
		{"remove", 1, 1, curRemove}, {"get_key", 1, 2, curGetKey}, {"get_value", 1, 2, curGetValue}, {"get", 1, 2, curGet},
		{"seize", 1, 1, curSeize}, {"jump", 1, 2, curJump}, {"jump_back", 1, 2, curJumpBack}, {"step", 1, 1, curStep},
		{"step_back", 1, 1, curStepBack}, {"db", 1, 1, curDB}, {"error", 1, 1, curError},
	} {
		k.cursorMembers = append(k.cursorMembers, member{m.name, s.function("cur_"+m.name, m.least, m.most, m.body)})
	}
}

// newCursor makes a cursor object. object is the database object that cursor:db() returns.
func (s *state) newCursor(h *handle, object lua.LValue) *lua.LTable {
	cur := &cursor{h: h, of: h.db}
	if h.db != nil {
		cur.at = h.db.NewCursor()
		cur.at.Heed = h.s.leash.ask
	}
	t := s.object(s.classes.cursorMembers, s.classes.cursorMeta)
	t.RawSetString("cur_ptr_", s.userdata(cur))
	t.RawSetString("db_", object)
	return t
}

// cursor returns the cursor whose method is called.
func (c call) cursor() *cursor { return kept[*cursor](c, 1, "cur_ptr_") }

// do runs an operation on the cursor. The reply of the call waits for the updates that op adds to
// p.
func (cur *cursor) do(c call, op func(at *db.Cursor, p *db.Pending) error) bool {
	return cur.h.do(c, cur.on(op))
}

// on returns op as an operation on a database. It makes a new db.Cursor if the script has opened
// another file with the cursor's database object.
func (cur *cursor) on(op func(at *db.Cursor, p *db.Pending) error) func(d *db.DB) error {
	return func(d *db.DB) error {
		if cur.of != cur.h.db {
			cur.of, cur.at = cur.h.db, d.NewCursor()
			cur.at.Heed = cur.h.s.leash.ask
		}
		cur.at.On(d)
		return op(cur.at, cur.h.pending())
	}
}

func dbCursor(c call) int {
	c.l.Push(c.s.newCursor(c.handleOf(1), c.l.Get(1)))
	return 1
}

func curNew(c call) int {
	c.l.Push(c.s.newCursor(c.handleOf(2), c.l.Get(2)))
	return 1
}

// dbCursorProcess calls a function with a cursor, and disables the cursor when the function has
// returned.
func dbCursorProcess(c call) int {
	f := c.l.Get(2)
	if !c.callable(f) {
		c.refuse()
	}
	t := c.s.newCursor(c.handleOf(1), c.l.Get(1))
	_, err := c.protect(f, 0, t)
	t.RawSetString("cur_ptr_", lua.LNil)
	if err != nil {
		c.again(err)
	}
	return 0
}

// dbPairs returns an iterator over all records, for a for loop.
func dbPairs(c call) int {
	h := c.handleOf(1)
	cur := &cursor{h: h}
	begun := false
	c.l.Push(c.s.function("db_pairs", 0, anyNumber, func(c call) int {
		if !begun {
			begun = true
			if !cur.do(c, (*db.Cursor).Jump) {
				return c.pushNil()
			}
		}
		return next(c, cur)
	}))
	return 1
}

// next pushes the record at the cursor, and steps on.
func next(c call, cur *cursor) int {
	var key, value []byte
	if !cur.do(c, func(at *db.Cursor, p *db.Pending) (err error) {
		key, value, _, err = at.Get(p, true)
		return err
	}) {
		return c.pushNil()
	}
	c.pushBytes(key)
	return 1 + c.pushBytes(value)
}

func curCall(c call) int { return next(c, c.cursor()) }

func curDisable(c call) int {
	c.cursor()
	c.table(1).RawSetString("cur_ptr_", lua.LNil)
	return 0
}

func curString(c call) int {
	t := c.table(1)
	if t.RawGetString("cur_ptr_") == lua.LNil {
		return c.pushBytes([]byte("(disabled)"))
	}
	cur := c.cursor()
	key, path := "(nil)", "(nil)"
	if cur.h.db != nil {
		path = cur.h.db.Info().Path
		cur.do(c, func(at *db.Cursor, p *db.Pending) error {
			k, err := at.GetKey(p, false)
			if err == nil {
				key = string(k)
			}
			return err
		})
	}
	return c.pushBytes([]byte(path + ": " + key))
}

func curDB(c call) int {
	c.cursor()
	c.l.Push(c.table(1).RawGetString("db_"))
	return 1
}

func curError(c call) int {
	h := c.cursor().h
	c.l.Push(c.s.newError(h.code, h.message))
	return 1
}

// jump moves the cursor to the first or last record, or to a key if the script gives one.
func jump(c call, first func(*db.Cursor, *db.Pending) error, byKey func(*db.Cursor, *db.Pending, []byte) error) int {
	cur := c.cursor()
	if c.l.GetTop() == 1 {
		return c.pushBool(cur.do(c, first))
	}
	key := c.bytes(2)
	return c.pushBool(cur.do(c, func(at *db.Cursor, p *db.Pending) error { return byKey(at, p, key) }))
}

func curJump(c call) int     { return jump(c, (*db.Cursor).Jump, (*db.Cursor).JumpKey) }
func curJumpBack(c call) int { return jump(c, (*db.Cursor).JumpBack, (*db.Cursor).JumpBackKey) }

func curStep(c call) int { return c.pushBool(c.cursor().do(c, (*db.Cursor).Step)) }

func curStepBack(c call) int { return c.pushBool(c.cursor().do(c, (*db.Cursor).StepBack)) }

// part serves get_key and get_value.
func part(c call, get func(at *db.Cursor, p *db.Pending, step bool) ([]byte, error)) int {
	var value []byte
	step := c.flag(2, false)
	if !c.cursor().do(c, func(at *db.Cursor, p *db.Pending) (err error) {
		value, err = get(at, p, step)
		return err
	}) {
		return c.pushNil()
	}
	return c.pushBytes(value)
}

func curGetKey(c call) int { return part(c, (*db.Cursor).GetKey) }
func curGetValue(c call) int {
	return part(c, func(cur *db.Cursor, p *db.Pending, step bool) ([]byte, error) {
		_, value, _, err := cur.Get(p, step)
		return value, err
	})
}

// whole pushes key, value and expiration time of the record at the cursor, or nil.
func whole(c call, get func(at *db.Cursor, p *db.Pending) (key, value []byte, xt int64, err error)) int {
	var key, value []byte
	var xt int64
	if !c.cursor().do(c, func(at *db.Cursor, p *db.Pending) (err error) {
		key, value, xt, err = get(at, p)
		return err
	}) {
		return c.pushNil()
	}
	c.pushBytes(key)
	c.pushBytes(value)
	return 2 + c.pushNumber(float64(xt))
}

func curGet(c call) int {
	step := c.flag(2, false)
	return whole(c, func(at *db.Cursor, p *db.Pending) ([]byte, []byte, int64, error) { return at.Get(p, step) })
}

func curSeize(c call) int {
	return whole(c, (*db.Cursor).Seize)
}

func curRemove(c call) int {
	return c.pushBool(c.cursor().do(c, (*db.Cursor).Remove))
}

// curSetValue takes value, expiration time and step, as the original's documentation says. The
// original itself mixes up the last two.
func curSetValue(c call) int {
	cur := c.cursor()
	value, xt, step := c.bytes(2), c.xt(3), c.flag(4, false)
	return c.pushBool(cur.do(c, func(at *db.Cursor, p *db.Pending) error { return at.SetValue(p, value, xt, step) }))
}

func curAccept(c call) int {
	cur := c.cursor()
	visit, writable, step := c.visitor(c.visitorOf(2)), c.flag(3, true), c.flag(4, false)
	return c.pushBool(cur.h.visit(c, cur.on(func(at *db.Cursor, p *db.Pending) error {
		if writable {
			return at.Accept(p, visit, step)
		}
		key, value, xt, err := at.Get(p, step)
		if err == nil {
			visit(key, value, xt, true)
		}
		return err
	})))
}
