package script

import (
	"gotycoon/db"
)

// jump moves to a key where one is given.
func jump(c call, first func(*db.Cursor, *db.Pending) error, byKey func(*db.Cursor, *db.Pending, []byte) error) int {
	cur := c.cursorOf(1)
	if c.l.GetTop() == 1 {
		return c.pushBool(cur.do(c, first))
	}
	key := c.bytes(2)
	return c.pushBool(cur.do(c, func(at *db.Cursor, p *db.Pending) error { return byKey(at, p, key) }))
}

func curJump(c call) int     { return jump(c, (*db.Cursor).Jump, (*db.Cursor).JumpKey) }
func curJumpBack(c call) int { return jump(c, (*db.Cursor).JumpBack, (*db.Cursor).JumpBackKey) }

func curStep(c call) int { return c.pushBool(c.cursorOf(1).do(c, (*db.Cursor).Step)) }

func curStepBack(c call) int { return c.pushBool(c.cursorOf(1).do(c, (*db.Cursor).StepBack)) }

// part is get_key and get_value.
func part(c call, get func(at *db.Cursor, p *db.Pending, step bool) ([]byte, error)) int {
	var value []byte
	step := c.flag(2, false)
	if !c.cursorOf(1).do(c, func(at *db.Cursor, p *db.Pending) (err error) {
		value, err = get(at, p, step)
		return err
	}) {
		return c.pushNil()
	}
	return c.pushBytes(value)
}

func curGetKey(c call) int   { return part(c, (*db.Cursor).GetKey) }
func curGetValue(c call) int { return part(c, (*db.Cursor).GetValue) }

// whole pushes key, value and expiration time, or nil.
func whole(c call, get func(at *db.Cursor, p *db.Pending) (key, value []byte, xt int64, err error)) int {
	var key, value []byte
	var xt int64
	if !c.cursorOf(1).do(c, func(at *db.Cursor, p *db.Pending) (err error) {
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
	return c.pushBool(c.cursorOf(1).do(c, (*db.Cursor).Remove))
}

// curSetValue does what the documentation of the original says: value, expiration, step. The original mixes the last two up.
func curSetValue(c call) int {
	cur := c.cursorOf(1)
	value, xt, step := c.bytes(2), c.xt(3), c.flag(4, false)
	return c.pushBool(cur.do(c, func(at *db.Cursor, p *db.Pending) error { return at.SetValue(p, value, xt, step) }))
}

func curAccept(c call) int {
	cur := c.cursorOf(1)
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
