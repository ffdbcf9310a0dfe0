package script

import (
	lua "github.com/yuin/gopher-lua"

	"gotycoon/db/record"
)

// call is one call of a Go function by a script. Arguments count from 1; argument 1 of a method is
// its object.
type call struct {
	s    *state
	l    *lua.LState
	name string // of the function, for errors
}

// function returns a Lua function that runs body. A call with fewer than least or more than most
// arguments raises an error.
func (s *state) function(name string, least, most int, body func(c call) int) *lua.LFunction {
	return s.l.NewFunction(func(l *lua.LState) int {
		c := call{s, l, name}
		if n := l.GetTop(); n < least || n > most {
			c.refuse()
		}
		return body(c)
	})
}

// anyNumber is the limit of a function that ignores surplus arguments.
const anyNumber = 1 << 30

// refuse raises the error for wrong arguments. As in the original, its message has no position.
func (c call) refuse() { c.raise("invalid arguments") }

// raise raises an error with the function's name in front.
func (c call) raise(message string) { c.l.Error(lua.LString(c.name+": "+message), 0) }

// text returns a string argument. A number counts as a string; any other value raises an error.
func (c call) text(i int) string {
	t, ok := text(c.l.Get(i))
	if !ok {
		c.refuse()
	}
	return t
}

func (c call) bytes(i int) []byte { return []byte(c.text(i)) }

// has reports whether an argument is given and is not nil.
func (c call) has(i int) bool { return c.l.Get(i) != lua.LNil }

// float returns a number argument. A value that is no number counts as 0.
func (c call) float(i int) float64 {
	f, _ := number(c.l.Get(i))
	return f
}

func (c call) int(i int, absent int64) int64 {
	if !c.has(i) {
		return absent
	}
	return cInt64(c.float(i))
}

// xt returns an expiration time argument.
func (c call) xt(i int) record.XT { return record.XT(c.int(i, int64(record.Never))) }

// flag returns a boolean argument, or absent if the argument is not given.
func (c call) flag(i int, absent bool) bool {
	if i > c.l.GetTop() || !c.has(i) {
		return absent
	}
	return lua.LVAsBool(c.l.Get(i))
}

func (c call) table(i int) *lua.LTable {
	t, ok := c.l.Get(i).(*lua.LTable)
	if !ok {
		c.refuse()
	}
	return t
}

// texts returns the strings and numbers of an array argument. Other values in the array are left
// out.
func (c call) texts(i int) [][]byte {
	var list [][]byte
	t := c.table(i)
	for k := range t.MaxN() {
		if v, ok := text(t.RawGetInt(k + 1)); ok {
			list = append(list, []byte(v))
		}
	}
	return list
}

func (c call) pushBool(ok bool) int {
	c.l.Push(lua.LBool(ok))
	return 1
}

func (c call) pushBytes(b []byte) int {
	c.s.allow(c.l, float64(len(b)))
	return c.s.pushNew(c.l, string(b))
}

func (c call) pushNumber(f float64) int {
	c.l.Push(lua.LNumber(f))
	return 1
}

func (c call) pushNil() int {
	c.l.Push(lua.LNil)
	return 1
}

// pushTexts pushes an array of strings.
func (c call) pushTexts(list [][]byte) int {
	t := c.l.CreateTable(len(list), 0)
	for _, v := range list {
		t.Append(c.s.room.text(string(v)))
	}
	c.s.room.table(t, len(list))
	c.l.Push(t)
	return 1
}

// callable reports whether a value can be called.
func (c call) callable(v lua.LValue) bool {
	return v.Type() == lua.LTFunction || ownMetamethod(c.l, v, "__call") != lua.LNil
}

// protect calls f and returns as many results as wanted. The error is the value that f has raised.
func (c call) protect(f lua.LValue, results int, args ...lua.LValue) ([]lua.LValue, error) {
	return c.s.protector.apart(c.l, f, args, results, nil)
}

// again raises an error of protect once more.
func (c call) again(err error) {
	if e, ok := err.(*raised); ok {
		c.l.Error(e.value, 0)
	}
	c.l.Error(lua.LString(err.Error()), 0)
}
