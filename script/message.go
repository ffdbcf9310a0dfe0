package script

import (
	"regexp"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// translation is a message of the interpreter and how the reference interpreter says it.
type translation struct {
	pattern *regexp.Regexp
	say     func(s *state, chunk string, line int, m []string) string
}

// translations of messages behind their position.
var translations = [...]translation{
	{regexp.MustCompile(`^attempt to index a non-table object\((\w+)\) with key '(?s:(.*))'$`), sayIndex},
	{regexp.MustCompile(`^attempt to call a non-function object$`), sayCall},
	{regexp.MustCompile(`^cannot perform \w+ operation between (\w+) and (\w+)$`), sayArithmetic},
	{regexp.MustCompile(`^__unm undefined$`), sayMinus},
	{regexp.MustCompile(`^__len undefined$`), sayLength},
	{regexp.MustCompile(`^attempt to compare (\w+) with (\w+)$`), sayCompare},
	{regexp.MustCompile(`^for statement (init|limit|step) must be a number$`), sayFor},
	{regexp.MustCompile(`^bad argument #(\d+) to (\S+) \((?s:(.*))\)$`), sayArgument},
	{regexp.MustCompile(`^(?:registry overflow|lua callstack overflow)`), func(*state, string, int, []string) string { return "stack overflow" }},
	{regexp.MustCompile(`^can not yield from outside of a coroutine`), func(*state, string, int, []string) string {
		return "attempt to yield across metamethod/C-call boundary"
	}},
	{regexp.MustCompile(`^can not resume a dead thread`), func(*state, string, int, []string) string { return "cannot resume dead coroutine" }},
	{regexp.MustCompile(`^can not resume a running thread`), func(*state, string, int, []string) string {
		return "cannot resume non-suspended coroutine"
	}},
}

// position is what stands in front of most messages.
var position = regexp.MustCompile(`^(?s:(.*?)):(\d+): (?s:(.*))$`)

// translate returns an error value as the reference interpreter has it.
func (s *state) translate(v lua.LValue) lua.LValue {
	message, ok := v.(lua.LString)
	if !ok {
		return v
	}
	m := position.FindStringSubmatch(string(message))
	if m == nil {
		return lua.LString(s.say("", 0, strings.TrimPrefix(string(message), " ")))
	}
	line, _ := strconv.Atoi(m[2])
	return lua.LString(m[1] + ":" + m[2] + ": " + s.say(m[1], line, m[3]))
}

func (s *state) say(chunk string, line int, message string) string {
	for i := range translations {
		if m := translations[i].pattern.FindStringSubmatch(message); m != nil {
			return translations[i].say(s, chunk, line, m)
		}
	}
	return message
}

func sayIndex(s *state, chunk string, line int, m []string) string {
	return "attempt to index " + s.what(chunk, line, indexing, m[2], m[1])
}

func sayCall(s *state, chunk string, line int, _ []string) string {
	return "attempt to call " + s.what(chunk, line, calling, "", "table")
}

func sayArithmetic(s *state, chunk string, line int, m []string) string {
	culprit := m[2]
	if m[1] != "number" && m[1] != "string" {
		culprit = m[1]
	}
	return "attempt to perform arithmetic on " + s.what(chunk, line, arithmetic, "", culprit)
}

func sayMinus(s *state, chunk string, line int, _ []string) string {
	return "attempt to perform arithmetic on " + s.what(chunk, line, arithmetic, "", "table")
}

func sayLength(s *state, chunk string, line int, _ []string) string {
	return "attempt to get length of " + s.what(chunk, line, lengthOf, "", "userdata")
}

func sayCompare(_ *state, _ string, _ int, m []string) string {
	if m[1] == m[2] {
		return "attempt to compare two " + m[1] + " values"
	}
	return m[0]
}

func sayFor(_ *state, _ string, _ int, m []string) string {
	if m[1] == "init" {
		m[1] = "initial value"
	}
	return "'for' " + m[1] + " must be a number"
}

func sayArgument(_ *state, _ string, _ int, m []string) string {
	name := strings.Trim(m[2], "'")
	if at := strings.LastIndexAny(name, ".:"); at >= 0 {
		name = name[at+1:]
	}
	return "bad argument #" + m[1] + " to '" + name + "' (" + m[3] + ")"
}

// what names a value that cannot be used, with its type.
func (s *state) what(chunk string, line int, u use, key, typ string) string {
	if name := s.called(chunk, line, u, key, typ); name != "" {
		return name + "(a " + typ + " value)"
	}
	return "a " + typ + " value"
}

// complain raises an error about the use of a value in the line that is running.
func (s *state) complain(l *lua.LState, u use, what string, key, typ string) {
	chunk, line := "", 0
	if m := position.FindStringSubmatch(l.Where(1) + " "); m != nil {
		chunk = m[1]
		line, _ = strconv.Atoi(m[2])
	}
	l.RaiseError("%s %s", what, s.what(chunk, line, u, key, typ))
}
