package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// stringFunctions replace those of the interpreter, which take text as UTF-8 here and there and write numbers its own way.
func (s *state) stringFunctions() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"byte": s.strByte, "char": s.strChar, "find": s.strFind, "format": s.strFormat, "gmatch": s.strGmatch, "gfind": s.strGmatch,
		"gsub": s.strGsub, "len": s.strLen, "lower": s.strLower, "match": s.strMatch, "rep": s.strRep,
		"reverse": s.strReverse, "sub": s.strSub, "upper": s.strUpper,
	}
}

// checkText returns a text argument of a library function.
func (s *state) checkText(l *lua.LState, i int) string {
	t, ok := text(l.Get(i))
	if !ok {
		badType(l, i, "string")
	}
	return t
}

// checkNumber returns a number argument of a library function.
func checkNumber(l *lua.LState, i int) float64 {
	f, ok := number(l.Get(i))
	if !ok {
		badType(l, i, "number")
	}
	return f
}

func checkInt(l *lua.LState, i int) int { return int(cInt64(checkNumber(l, i))) }

// optInt returns an integer argument, or the default where it is absent.
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

// place turns a position argument, negative from the end, into an offset from the begin, which may be outside.
func place(i, length int) int {
	if i < 0 {
		return max(i+length+1, 0)
	}
	return i
}

func (s *state) strByte(l *lua.LState) int {
	t := s.checkText(l, 1)
	from := place(optInt(l, 2, 1), len(t))
	to := min(place(optInt(l, 3, from), len(t)), len(t))
	from = max(from, 1)
	for i := from; i <= to; i++ {
		l.Push(lua.LNumber(t[i-1]))
	}
	return max(to-from+1, 0)
}

func (s *state) strChar(l *lua.LState) int {
	t := make([]byte, l.GetTop())
	for i := range t {
		n := checkInt(l, i+1)
		if n < 0 || n > 255 {
			l.ArgError(i+1, "invalid value")
		}
		t[i] = byte(n)
	}
	return s.pushNew(l, string(t))
}

func (s *state) strLen(l *lua.LState) int {
	l.Push(lua.LNumber(len(s.checkText(l, 1))))
	return 1
}

func (s *state) strSub(l *lua.LState) int {
	t := s.checkText(l, 1)
	from := max(place(checkInt(l, 2), len(t)), 1)
	to := min(place(optInt(l, 3, -1), len(t)), len(t))
	if from > to {
		return s.pushText(l, "")
	}
	return s.pushText(l, t[from-1:to])
}

func (s *state) strRep(l *lua.LState) int {
	t, n := s.checkText(l, 1), checkInt(l, 2)
	if n <= 0 || t == "" {
		return s.pushText(l, "")
	}
	s.allow(l, float64(len(t))*float64(n))
	const atOnce = 1 << 20 // bytes
	piece := strings.Repeat(t, min(n, 1+atOnce/len(t)))
	var out strings.Builder
	out.Grow(len(t) * n)
	for left := len(t) * n; left > 0; left -= len(piece) {
		piece = piece[:min(left, len(piece))]
		s.leash.work(l, len(piece)/comparedAtOnce)
		out.WriteString(piece)
	}
	return s.pushNew(l, out.String())
}

func (s *state) strReverse(l *lua.LState) int {
	text := s.checkText(l, 1)
	s.allow(l, float64(len(text)))
	t := []byte(text)
	for i, j := 0, len(t)-1; i < j; i, j = i+1, j-1 {
		t[i], t[j] = t[j], t[i]
	}
	return s.pushNew(l, string(t))
}

func (s *state) strLower(l *lua.LState) int {
	return s.changeCase(l, 'A', 'Z')
}

func (s *state) strUpper(l *lua.LState) int {
	return s.changeCase(l, 'a', 'z')
}

// changeCase pushes a text with the case of the letters from one to the other changed.
func (s *state) changeCase(l *lua.LState, from, to byte) int {
	t := s.checkText(l, 1)
	var changed []byte
	for i := range len(t) {
		if from <= t[i] && t[i] <= to {
			if changed == nil {
				s.allow(l, float64(len(t)))
				changed = []byte(t)
			}
			changed[i] ^= 0x20
		}
	}
	if changed == nil {
		return s.pushText(l, t)
	}
	return s.pushNew(l, string(changed))
}

// pushText pushes a text that is there already, or a part of it.
func (s *state) pushText(l *lua.LState, t string) int {
	l.Push(lua.LString(t))
	return 1
}
