package script

import (
	"errors"

	lua "github.com/yuin/gopher-lua"
)

// errorValue returns what a failed call has raised.
func (s *state) errorValue(err error) lua.LValue {
	if e, ok := errors.AsType[*lua.ApiError](err); ok && e.Object != nil {
		return e.Object
	}
	return lua.LString(err.Error())
}

func (s *state) basePCall(l *lua.LState) int {
	f := l.CheckAny(1)
	args := make([]lua.LValue, 0, l.GetTop())
	for i := 2; i <= l.GetTop(); i++ {
		args = append(args, l.Get(i))
	}
	return s.pushOutcome(l, f, args, nil)
}

func (s *state) baseXPCall(l *lua.LState) int {
	return s.pushOutcome(l, l.CheckAny(1), nil, l.CheckFunction(2))
}

// pushOutcome calls f and pushes true and its results, or false and the error.
func (s *state) pushOutcome(l *lua.LState, f lua.LValue, args []lua.LValue, handler *lua.LFunction) int {
	results, err := s.apart(l, f, args, lua.MultRet, handler)
	if err == nil {
		l.Push(lua.LTrue)
		for _, v := range results {
			l.Push(v)
		}
		return 1 + len(results)
	}
	s.leash.check(l) // nobody catches the end
	l.Push(lua.LFalse)
	if e, ok := errors.AsType[*raised](err); ok {
		l.Push(e.value)
	} else {
		l.Push(lua.LString(err.Error()))
	}
	return 2
}

func (s *state) baseError(l *lua.LState) int {
	level := optInt(l, 2, 1)
	message, ok := l.Get(1).(lua.LString)
	if n, isNumber := l.Get(1).(lua.LNumber); isNumber {
		message, ok = lua.LString(numberText(float64(n))), true
	}
	if ok && level > 0 {
		message = lua.LString(whereAt(l, level)) + message
	}
	if ok {
		l.Error(message, 0)
	}
	l.Error(l.Get(1), 0)
	return 0
}

// whereAt is the position of the function at a level of the calls, with a blank behind it.
func whereAt(l *lua.LState, level int) string {
	if w := l.Where(level); w != "" && w != "[G]:" { // a function in Go has no position
		return w + " "
	}
	return ""
}

// coroutineFunctions replace those that make and resume coroutines.
func (s *state) coroutineFunctions() map[string]lua.LGFunction {
	module := s.l.GetGlobal("coroutine").(*lua.LTable)
	create, resume := module.RawGetString("create"), module.RawGetString("resume")
	return map[string]lua.LGFunction{
		"create": func(l *lua.LState) int { return s.coCreate(l, create) },
		"resume": func(l *lua.LState) int {
			n := s.coResume(l, resume)
			return n
		},
		"wrap": func(l *lua.LState) int {
			s.coCreate(l, create)
			co := l.Get(-1)
			l.Push(l.NewFunction(func(l *lua.LState) int {
				l.Insert(co, 1)
				n := s.coResume(l, resume)
				if l.Get(-n) == lua.LTrue {
					return n - 1
				}
				l.Error(l.Get(-1), 0)
				return 0
			}))
			return 1
		},
	}
}

// coCreate makes a coroutine on the leash of the state.
func (s *state) coCreate(l *lua.LState, create lua.LValue) int {
	f := l.CheckFunction(1)
	l.RemoveContext() // or the coroutine would get one of its own
	defer l.SetContext(s.leash)
	l.Push(create)
	l.Push(f)
	l.Call(1, 1)
	if co, ok := l.Get(-1).(*lua.LState); ok {
		co.SetContext(s.leash)
	}
	return 1
}

// coResume resumes a coroutine and returns how many results it has pushed.
func (s *state) coResume(l *lua.LState, resume lua.LValue) int {
	co := l.CheckThread(1)
	n := l.GetTop()
	if status := l.Status(co); status != "suspended" { // the library would resume one that waits for another
		l.Push(lua.LFalse)
		l.Push(lua.LString("cannot resume " + status + " coroutine"))
		return 2
	}
	args := make([]lua.LValue, 0, n)
	for i := 1; i <= n; i++ {
		args = append(args, l.Get(i))
	}
	l.Push(resume)
	for _, v := range args {
		l.Push(v)
	}
	l.Call(n, lua.MultRet)
	s.leash.check(l)
	return l.GetTop() - n
}
