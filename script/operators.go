package script

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// installTypes gives texts and numbers what the library does not do with them as the reference interpreter: arithmetic reads texts as
// parseNumber does. getmetatable shows the table of texts only.
func (s *state) installTypes(strings *lua.LTable) {
	arithmetic := map[string]lua.LGFunction{"__unm": s.minus}
	for name, operate := range operators() {
		arithmetic[name] = func(l *lua.LState) int { return s.arithmetic(l, name, operate) }
	}
	texts, numbers := s.l.NewTable(), s.l.NewTable()
	s.l.SetFuncs(texts, arithmetic)
	texts.RawSetString("__index", strings)
	numbers.RawSetString("__index", s.l.NewFunction(s.indexNumber))
	s.l.SetMetatable(lua.LString(""), texts)
	s.l.SetMetatable(lua.LNumber(0), numbers)
}

// operators returns the arithmetic operators by their metamethods.
func operators() map[string]func(a, b float64) float64 {
	return map[string]func(a, b float64) float64{
		"__add": func(a, b float64) float64 { return a + b },
		"__sub": func(a, b float64) float64 { return a - b },
		"__mul": func(a, b float64) float64 { return a * b },
		"__div": func(a, b float64) float64 { return a / b },
		"__mod": func(a, b float64) float64 { return a - math.Floor(a/b)*b },
		"__pow": math.Pow,
	}
}

// arithmetic is an operator with an operand that is no number.
func (s *state) arithmetic(l *lua.LState, name string, operate func(a, b float64) float64) int {
	a, b := l.Get(1), l.Get(2)
	for _, v := range []lua.LValue{a, b} {
		if own := s.ownMetamethod(l, v, name); own != lua.LNil {
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
func (s *state) ownMetamethod(l *lua.LState, v lua.LValue, name string) lua.LValue {
	switch v.Type() {
	case lua.LTTable, lua.LTUserData:
		return l.GetMetaField(v, name)
	}
	return lua.LNil
}

func (s *state) minus(l *lua.LState) int {
	f, ok := number(l.Get(1))
	if !ok {
		misuse(l, "perform arithmetic on", l.Get(1))
	}
	l.Push(lua.LNumber(-f))
	return 1
}

// misuse raises the error for an operation on a value that has none.
func misuse(l *lua.LState, operation string, v lua.LValue) {
	l.RaiseError("attempt to %s a %s value", operation, v.Type())
}

// indexNumber gives away the function of concatenations (rewrite.go).
func (s *state) indexNumber(l *lua.LState) int {
	if l.Get(2) != lua.LString(concatKey) {
		misuse(l, "index", l.Get(1))
	}
	l.Push(s.concat)
	return 1
}

// join is the concatenation of its arguments, from right to left where a metamethod has a say.
func (s *state) join(l *lua.LState) int {
	n := l.GetTop()
	var room [8]string
	parts := room[:0]
	size := 0
	for i := 1; i <= n; i++ {
		t, ok := text(l.Get(i))
		if !ok {
			return s.joinValues(l, n)
		}
		parts = append(parts, t)
		size += len(t)
	}
	s.allow(l, float64(size))
	if size < largeText {
		return s.pushText(l, strings.Join(parts, ""))
	}
	out := make([]byte, 0, size)
	for _, part := range parts {
		if size == len(part) {
			return s.pushText(l, part)
		}
		out = appendText(out, part)
	}
	return s.pushBuilt(l, out)
}

func (s *state) joinValues(l *lua.LState, n int) int {
	right := l.Get(n)
	for i := n - 1; i > 0; i-- {
		right = s.joinTwo(l, l.Get(i), right)
	}
	l.Push(right)
	return 1
}

func (s *state) joinTwo(l *lua.LState, a, b lua.LValue) lua.LValue {
	x, ok := text(a)
	y, alsoOK := text(b)
	if ok && alsoOK {
		s.allow(l, float64(len(x)+len(y)))
		if x == "" || y == "" {
			return lua.LString(x + y)
		}
		return s.room.text(x + y)
	}
	for _, v := range []lua.LValue{a, b} {
		if own := s.ownMetamethod(l, v, "__concat"); own != lua.LNil {
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
