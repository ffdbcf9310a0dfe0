package script

import (
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// tableLib is the library table.
type tableLib struct{ budget }

// functions returns replacements and additions for the library's functions.
func (lib tableLib) functions() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"concat": lib.concat, "insert": lib.insert, "remove": lib.remove, "sort": lib.sort,
		"foreach": lib.forEach, "foreachi": lib.forEachI,
	}
}

func (lib tableLib) concat(l *lua.LState) int {
	t := l.CheckTable(1)
	separator := ""
	if l.Get(2) != lua.LNil {
		separator = checkText(l, 2)
	}
	from, to := optInt(l, 3, 1), optInt(l, 4, t.Len())
	size := 0
	for i := from; i <= to; i++ {
		lib.leash.work(l, moveSteps)
		switch v := t.RawGetInt(i).(type) {
		case lua.LString:
			size += len(v) + len(separator)
		case lua.LNumber:
			size += longestNumber + len(separator)
		default:
			l.RaiseError("invalid value (%s) at index %d in table for 'concat'", v.Type(), i)
		}
		lib.allow(l, float64(size))
	}
	out := make([]byte, 0, size)
	for i := from; i <= to; i++ {
		part, _ := text(t.RawGetInt(i))
		lib.leash.work(l, moveSteps+(len(part)+len(separator))/comparedAtOnce)
		out = appendText(out, part)
		if i < to {
			out = appendText(out, separator)
		}
	}
	return lib.pushBuilt(l, out)
}

// longestNumber is the greatest length of a number as text.
const longestNumber = 24

func (lib tableLib) insert(l *lua.LState) int {
	t := l.CheckTable(1)
	last := t.Len() + 1
	switch l.GetTop() {
	case 2:
		t.RawSetInt(last, l.Get(2))
	case 3:
		at := checkInt(l, 2)
		for i := max(last, at); i > at; i-- {
			lib.leash.work(l, moveSteps)
			t.RawSetInt(i, t.RawGetInt(i-1))
		}
		t.RawSetInt(at, l.Get(3))
	default:
		l.RaiseError("wrong number of arguments to 'insert'")
	}
	return 0
}

func (lib tableLib) remove(l *lua.LState) int {
	t := l.CheckTable(1)
	last := t.Len()
	at := optInt(l, 2, last)
	if at < 1 || at > last {
		return 0
	}
	l.Push(t.RawGetInt(at))
	for i := at; i < last; i++ {
		lib.leash.work(l, moveSteps)
		t.RawSetInt(i, t.RawGetInt(i+1))
	}
	t.RawSetInt(last, lua.LNil)
	return 1
}

// sort sorts in place. With a function that contradicts itself the order is undefined, but no value
// is lost.
func (lib tableLib) sort(l *lua.LState) int {
	t := l.CheckTable(1)
	var less *lua.LFunction
	if l.Get(2) != lua.LNil {
		less = l.CheckFunction(2)
	}
	values := make([]lua.LValue, t.Len())
	for i := range values {
		values[i] = t.RawGetInt(i + 1)
	}
	before := func(a, b lua.LValue) bool {
		if less == nil {
			return lessThan(l, a, b)
		}
		l.Push(less)
		l.Push(a)
		l.Push(b)
		l.Call(2, 1)
		result := lua.LVAsBool(l.Get(-1))
		l.Pop(1)
		return result
	}
	slices.SortFunc(values, func(a, b lua.LValue) int {
		lib.leash.check(l)
		switch {
		case before(a, b):
			return -1
		case before(b, a):
			return 1
		}
		return 0
	})
	for i, v := range values {
		t.RawSetInt(i+1, v)
	}
	return 0
}

// lessThan is the operator <.
func lessThan(l *lua.LState, a, b lua.LValue) bool {
	switch x := a.(type) {
	case lua.LNumber:
		if y, ok := b.(lua.LNumber); ok {
			return x < y
		}
	case lua.LString:
		if y, ok := b.(lua.LString); ok {
			return x < y
		}
	}
	return l.LessThan(a, b)
}

func (lib tableLib) forEach(l *lua.LState) int {
	t, f := l.CheckTable(1), l.CheckFunction(2)
	for key, value := t.Next(lua.LNil); key != lua.LNil; key, value = t.Next(key) {
		if lib.visited(l, f, key, value) {
			return 1
		}
	}
	return 0
}

func (lib tableLib) forEachI(l *lua.LState) int {
	t, f := l.CheckTable(1), l.CheckFunction(2)
	for i := 1; i <= t.Len(); i++ {
		if lib.visited(l, f, lua.LNumber(i), t.RawGetInt(i)) {
			return 1
		}
	}
	return 0
}

// visited calls f and reports whether its result ends the walk. The result then is on the stack.
func (lib tableLib) visited(l *lua.LState, f *lua.LFunction, key, value lua.LValue) bool {
	l.Push(f)
	l.Push(key)
	l.Push(value)
	l.Call(2, 1)
	if l.Get(-1) != lua.LNil {
		return true
	}
	l.Pop(1)
	return false
}
