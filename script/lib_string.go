package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// functions returns replacements for the library's functions, some of which take text as UTF-8 or
// write numbers in another way.
func (lib stringLib) functions() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"byte": lib.byte, "char": lib.char, "find": lib.find, "format": lib.format, "gmatch": lib.gmatch, "gfind": lib.gmatch,
		"gsub": lib.gsub, "len": lib.len, "lower": lib.lower, "match": lib.match, "rep": lib.rep,
		"reverse": lib.reverse, "sub": lib.sub, "upper": lib.upper,
	}
}

func (lib stringLib) byte(l *lua.LState) int {
	t := checkText(l, 1)
	from := place(optInt(l, 2, 1), len(t))
	to := min(place(optInt(l, 3, from), len(t)), len(t))
	from = max(from, 1)
	for i := from; i <= to; i++ {
		l.Push(lua.LNumber(t[i-1]))
	}
	return max(to-from+1, 0)
}

func (lib stringLib) char(l *lua.LState) int {
	t := make([]byte, l.GetTop())
	for i := range t {
		n := checkInt(l, i+1)
		if n < 0 || n > 255 {
			l.ArgError(i+1, "invalid value")
		}
		t[i] = byte(n)
	}
	return lib.pushNew(l, string(t))
}

func (lib stringLib) len(l *lua.LState) int {
	l.Push(lua.LNumber(len(checkText(l, 1))))
	return 1
}

func (lib stringLib) sub(l *lua.LState) int {
	t := checkText(l, 1)
	from := max(place(checkInt(l, 2), len(t)), 1)
	to := min(place(optInt(l, 3, -1), len(t)), len(t))
	if from > to {
		return pushText(l, "")
	}
	return pushText(l, t[from-1:to])
}

func (lib stringLib) rep(l *lua.LState) int {
	t, n := checkText(l, 1), checkInt(l, 2)
	if n <= 0 || t == "" {
		return pushText(l, "")
	}
	lib.allow(l, float64(len(t))*float64(n))
	const atOnce = 1 << 20 // bytes
	piece := strings.Repeat(t, min(n, 1+atOnce/len(t)))
	var out strings.Builder
	out.Grow(len(t) * n)
	for left := len(t) * n; left > 0; left -= len(piece) {
		piece = piece[:min(left, len(piece))]
		lib.leash.work(l, len(piece)/comparedAtOnce)
		out.WriteString(piece)
	}
	return lib.pushNew(l, out.String())
}

func (lib stringLib) reverse(l *lua.LState) int {
	text := checkText(l, 1)
	lib.allow(l, float64(len(text)))
	t := []byte(text)
	for i, j := 0, len(t)-1; i < j; i, j = i+1, j-1 {
		t[i], t[j] = t[j], t[i]
	}
	return lib.pushNew(l, string(t))
}

func (lib stringLib) lower(l *lua.LState) int {
	return lib.changeCase(l, 'A', 'Z')
}

func (lib stringLib) upper(l *lua.LState) int {
	return lib.changeCase(l, 'a', 'z')
}

// changeCase pushes a text in which the letters between from and to have changed their case.
func (lib stringLib) changeCase(l *lua.LState, from, to byte) int {
	t := checkText(l, 1)
	var changed []byte
	for i := range len(t) {
		if from <= t[i] && t[i] <= to {
			if changed == nil {
				lib.allow(l, float64(len(t)))
				changed = []byte(t)
			}
			changed[i] ^= 0x20
		}
	}
	if changed == nil {
		return pushText(l, t)
	}
	return lib.pushNew(l, string(changed))
}
