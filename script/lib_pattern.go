package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// newMatcher prepares a match whose errors are errors of the script.
func (lib stringLib) newMatcher(l *lua.LState, src, pat string) *matcher {
	return &matcher{src: src, pat: pat,
		raise: func(message string) { l.RaiseError("%s", message) },
		work:  func(steps int) { lib.leash.work(l, steps) },
		allow: func(size int) { lib.allow(l, float64(size)) },
	}
}

func (lib stringLib) find(l *lua.LState) int  { return lib.search(l, true) }
func (lib stringLib) match(l *lua.LState) int { return lib.search(l, false) }

// search serves string.find, which returns positions, and string.match.
func (lib stringLib) search(l *lua.LState, find bool) int {
	src, pat := checkText(l, 1), checkText(l, 2)
	init := min(max(place(optInt(l, 3, 1), len(src))-1, 0), len(src))
	if find && (lua.LVAsBool(l.Get(4)) || !strings.ContainsAny(pat, "^$*+?.([%-")) {
		at := strings.Index(src[init:], pat)
		if at < 0 {
			l.Push(lua.LNil)
			return 1
		}
		l.Push(lua.LNumber(init + at + 1))
		l.Push(lua.LNumber(init + at + len(pat)))
		return 2
	}
	m := lib.newMatcher(l, src, pat)
	begin, end := m.find(init)
	switch {
	case begin == noMatch:
		l.Push(lua.LNil)
		return 1
	case find:
		l.Push(lua.LNumber(begin + 1))
		l.Push(lua.LNumber(end))
		return 2 + m.pushCaptures(l, begin, end, false)
	}
	return m.pushCaptures(l, begin, end, true)
}

// value returns a capture. In a pattern without captures, capture 0 is the whole match.
func (m *matcher) value(i, begin, end int) lua.LValue {
	if i >= m.level {
		if i > 0 {
			m.raise("invalid capture index")
		}
		return lua.LString(m.src[begin:end])
	}
	c := m.captures[i]
	switch c.length {
	case openCapture:
		m.raise("unfinished capture")
	case placeCapture:
		return lua.LNumber(c.at + 1)
	}
	return lua.LString(m.src[c.at : c.at+c.length])
}

// pushCaptures pushes all captures and returns their number. With whole, a pattern without captures
// pushes the whole match.
func (m *matcher) pushCaptures(l *lua.LState, begin, end int, whole bool) int {
	n := m.level
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		l.Push(m.value(i, begin, end))
	}
	return n
}

func (lib stringLib) gmatch(l *lua.LState) int {
	m := lib.newMatcher(l, checkText(l, 1), checkText(l, 2))
	at := 0
	l.Push(l.NewFunction(func(l *lua.LState) int {
		m.raise = func(message string) { l.RaiseError("%s", message) }
		m.work = func(steps int) { lib.leash.work(l, steps) }
		for ; at <= len(m.src); at++ {
			m.level = 0
			end := m.match(at, 0)
			if end == noMatch {
				continue
			}
			begin := at
			if at = end; end == begin {
				at++
			}
			return m.pushCaptures(l, begin, end, true)
		}
		return 0
	}))
	return 1
}

func (lib stringLib) gsub(l *lua.LState) int {
	src, pat := checkText(l, 1), checkText(l, 2)
	repl := l.Get(3)
	switch repl.Type() {
	case lua.LTString, lua.LTNumber, lua.LTTable, lua.LTFunction:
	default:
		badType(l, 3, "string/function/table")
	}
	limit := optInt(l, 4, len(src)+1)
	m := lib.newMatcher(l, src, pat)
	p := 0
	if strings.HasPrefix(pat, "^") {
		p = 1
	}
	lib.allow(l, float64(len(src)))
	out := make([]byte, 0, len(src))
	at, count := 0, 0
	for count < limit {
		m.level = 0
		end := m.match(at, p)
		if end != noMatch {
			count++
			out = lib.substitute(l, m, out, repl, at, end)
			lib.allow(l, float64(len(out)))
		}
		switch {
		case end != noMatch && end > at:
			at = end
		case at < len(src):
			out = append(out, src[at])
			at++
		default:
			limit = count
		}
		if p == 1 {
			break
		}
	}
	lib.allow(l, float64(len(out)+len(src)-min(at, len(src))))
	out = append(out, src[min(at, len(src)):]...)
	lib.pushBuilt(l, out)
	l.Push(lua.LNumber(count))
	return 2
}

// substitute appends the replacement of a match.
func (lib stringLib) substitute(l *lua.LState, m *matcher, out []byte, repl lua.LValue, begin, end int) []byte {
	var v lua.LValue
	switch repl := repl.(type) {
	case *lua.LTable:
		v = l.GetTable(repl, m.value(0, begin, end))
	case *lua.LFunction:
		l.Push(repl)
		l.Call(m.pushCaptures(l, begin, end, true), 1)
		v = l.Get(-1)
		l.Pop(1)
	default:
		t, _ := text(repl)
		return m.expand(out, t, begin, end)
	}
	if lua.LVIsFalse(v) {
		return append(out, m.src[begin:end]...)
	}
	t, ok := text(v)
	if !ok {
		l.RaiseError("invalid replacement value (a %s)", v.Type())
	}
	m.allow(len(out) + len(t))
	return append(out, t...)
}

// expand appends a replacement text, in which % and a digit stand for a capture.
func (m *matcher) expand(out []byte, t string, begin, end int) []byte {
	for i := 0; i < len(t); i++ {
		m.work(1)
		if t[i] != '%' {
			out = append(out, t[i])
			continue
		}
		if i++; i == len(t) {
			out = append(out, 0) // in C a NUL stands behind each text
			break
		}
		switch c := t[i]; {
		case c == '0':
			m.work((end - begin) / comparedAtOnce)
			m.allow(len(out) + end - begin)
			out = append(out, m.src[begin:end]...)
		case isDigit(c):
			v, _ := text(m.value(int(c-'1'), begin, end))
			m.work(len(v) / comparedAtOnce)
			m.allow(len(out) + len(v))
			out = append(out, v...)
		default:
			out = append(out, c)
		}
	}
	return out
}
