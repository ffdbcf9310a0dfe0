package script

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// operators are the operators that differ from the reference interpreter in the library: arithmetic
// reads texts as numbers by rules of its own, and concatenation writes numbers in another way.
type operators struct {
	budget
	concat *lua.LFunction // join
}

// installOperators sets the metatables of texts and numbers. Texts get our arithmetic and the
// functions of the library string; numbers get the index that returns the function of
// concatenations. Texts keep a metatable that scripts can see with getmetatable.
func installOperators(l *lua.LState, b budget, strings *lua.LTable) {
	o := &operators{budget: b}
	o.concat = l.NewFunction(o.join)
	texts, numbers := l.NewTable(), l.NewTable()
	for name, operate := range arithmeticOperators() {
		texts.RawSetString(name, l.NewFunction(func(l *lua.LState) int { return o.arithmetic(l, name, operate) }))
	}
	texts.RawSetString("__unm", l.NewFunction(minus))
	texts.RawSetString("__index", strings)
	numbers.RawSetString("__index", l.NewFunction(o.indexNumber))
	l.SetMetatable(lua.LString(""), texts)
	l.SetMetatable(lua.LNumber(0), numbers)
}

// arithmeticOperators returns the arithmetic operators by the names of their metamethods.
func arithmeticOperators() map[string]func(a, b float64) float64 {
	return map[string]func(a, b float64) float64{
		"__add": func(a, b float64) float64 { return a + b },
		"__sub": func(a, b float64) float64 { return a - b },
		"__mul": func(a, b float64) float64 { return a * b },
		"__div": func(a, b float64) float64 { return a / b },
		"__mod": func(a, b float64) float64 { return a - math.Floor(a/b)*b },
		"__pow": math.Pow,
	}
}

// arithmetic is an operator with a text as an operand.
func (o *operators) arithmetic(l *lua.LState, name string, operate func(a, b float64) float64) int {
	a, b := l.Get(1), l.Get(2)
	for _, v := range []lua.LValue{a, b} {
		if own := ownMetamethod(l, v, name); own != lua.LNil {
			l.Push(own)
			l.Push(a)
			l.Push(b)
			l.Call(2, 1)
			return 1
		}
	}
	x, ok := number(a)
	y, alsoOK := number(b)
	if !ok || !alsoOK {
		culprit := b
		if !ok {
			culprit = a
		}
		misuse(l, "perform arithmetic on", culprit)
	}
	l.Push(lua.LNumber(operate(x, y)))
	return 1
}

// ownMetamethod returns a metamethod that a script has given a table or userdata.
func ownMetamethod(l *lua.LState, v lua.LValue, name string) lua.LValue {
	switch v.Type() {
	case lua.LTTable, lua.LTUserData:
		return l.GetMetaField(v, name)
	}
	return lua.LNil
}

func minus(l *lua.LState) int {
	f, ok := number(l.Get(1))
	if !ok {
		misuse(l, "perform arithmetic on", l.Get(1))
	}
	l.Push(lua.LNumber(-f))
	return 1
}

// misuse raises the error for an operation that a value does not support.
func misuse(l *lua.LState, operation string, v lua.LValue) {
	l.RaiseError("attempt to %s a %s value", operation, v.Type())
}

// indexNumber returns the function of concatenations to a chunk that asks for it: see concatKey.
func (o *operators) indexNumber(l *lua.LState) int {
	if l.Get(2) != lua.LString(concatKey) {
		misuse(l, "index", l.Get(1))
	}
	l.Push(o.concat)
	return 1
}

// join concatenates its arguments. If one of them has a metamethod, they are joined from right to
// left, as the operator does.
func (o *operators) join(l *lua.LState) int {
	n := l.GetTop()
	var room [8]string
	parts := room[:0]
	size := 0
	for i := 1; i <= n; i++ {
		t, ok := text(l.Get(i))
		if !ok {
			return o.joinValues(l, n)
		}
		parts = append(parts, t)
		size += len(t)
	}
	o.allow(l, float64(size))
	if size < largeText {
		return pushText(l, strings.Join(parts, ""))
	}
	out := make([]byte, 0, size)
	for _, part := range parts {
		if size == len(part) {
			return pushText(l, part)
		}
		out = appendText(out, part)
	}
	return o.pushBuilt(l, out)
}

func (o *operators) joinValues(l *lua.LState, n int) int {
	right := l.Get(n)
	for i := n - 1; i > 0; i-- {
		right = o.joinTwo(l, l.Get(i), right)
	}
	l.Push(right)
	return 1
}

func (o *operators) joinTwo(l *lua.LState, a, b lua.LValue) lua.LValue {
	x, ok := text(a)
	y, alsoOK := text(b)
	if ok && alsoOK {
		o.allow(l, float64(len(x)+len(y)))
		if x == "" || y == "" {
			return lua.LString(x + y)
		}
		return o.room.text(x + y)
	}
	for _, v := range []lua.LValue{a, b} {
		if own := ownMetamethod(l, v, "__concat"); own != lua.LNil {
			l.Push(own)
			l.Push(a)
			l.Push(b)
			l.Call(2, 1)
			result := l.Get(-1)
			l.Pop(1)
			return result
		}
	}
	culprit := b
	if !ok {
		culprit = a
	}
	misuse(l, "concatenate", culprit)
	return lua.LNil
}
