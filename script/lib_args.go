package script

import lua "github.com/yuin/gopher-lua"

// checkText returns a string argument of a library function. A number counts as a string.
func checkText(l *lua.LState, i int) string {
	t, ok := text(l.Get(i))
	if !ok {
		badType(l, i, "string")
	}
	return t
}

// checkNumber returns a number argument of a library function. A numeric string counts as a number.
func checkNumber(l *lua.LState, i int) float64 {
	f, ok := number(l.Get(i))
	if !ok {
		badType(l, i, "number")
	}
	return f
}

func checkInt(l *lua.LState, i int) int { return int(cInt64(checkNumber(l, i))) }

// optInt returns an integer argument, or absent if the argument is nil or missing.
func optInt(l *lua.LState, i, absent int) int {
	if l.Get(i) == lua.LNil {
		return absent
	}
	return checkInt(l, i)
}

func badType(l *lua.LState, i int, want string) {
	got := "no value"
	if i <= l.GetTop() {
		got = l.Get(i).Type().String()
	}
	l.ArgError(i, want+" expected, got "+got)
}

// pushText pushes a text that exists already, or a part of such a text: it needs no room.
func pushText(l *lua.LState, t string) int {
	l.Push(lua.LString(t))
	return 1
}

// place turns a position, which is negative from the end, into a position from the beginning. The
// result may lie outside of the text.
func place(i, length int) int {
	if i < 0 {
		return max(i+length+1, 0)
	}
	return i
}

// stringLib is the library string. Its functions are in lib_string.go, lib_format.go and
// lib_pattern.go.
type stringLib struct{ budget }
