package script

import (
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/internal/rescue"
)

// Protected calls run in a thread of their own. When an error is raised the interpreter cuts the variables that closures share with
// functions being called, those of the functions outside of the protected call included, which go on; a thread has only what the
// protected call has called.

// maxApart is how many protected calls can be inside each other, as in the reference interpreter.
const maxApart = 190

// raised is an error of a script on its way through Go.
type raised struct{ value lua.LValue }

// Error returns the text of the value.
func (e *raised) Error() string { return e.value.String() }

// apart calls f and returns as many results as wanted, or all with lua.MultRet. The error is what f has raised, or with a
// handler what that has made of it.
func (s *state) apart(l *lua.LState, f lua.LValue, args []lua.LValue, wanted int, handler *lua.LFunction) ([]lua.LValue, error) {
	if s.nested >= maxApart {
		l.RaiseError("C stack overflow")
	}
	s.nested++
	current := l.G.CurrentThread // a coroutine resumed inside would leave another one
	defer func() { s.nested, l.G.CurrentThread = s.nested-1, current }()
	th := s.thread(l)
	if err := s.protected(th, f, args, wanted, handler); err != nil {
		th.SetTop(0)
		if e, ok := errors.AsType[*lua.ApiError](err); ok && e.Type != lua.ApiErrorPanic {
			s.spare = append(s.spare, th)
		}
		return nil, &raised{s.errorValue(err)}
	}
	results := make([]lua.LValue, th.GetTop())
	for i := range results {
		results[i] = th.Get(i + 1)
	}
	th.SetTop(0)
	s.spare = append(s.spare, th)
	return results, nil
}

// protected calls f in a thread in which nothing runs. It goes by way of a function of ours, which saves the interpreter the list of
// all calls that it makes of every error: with the stack full that takes a second.
func (s *state) protected(th *lua.LState, f lua.LValue, args []lua.LValue, wanted int, handler *lua.LFunction) error {
	th.Push(s.quietly)
	th.Push(f)
	for _, v := range args {
		th.Push(v)
	}
	return th.PCall(1+len(args), wanted, s.handling(th, handler))
}

// callQuietly calls its first argument with the others.
func (s *state) callQuietly(l *lua.LState) int {
	l.Panic = func(l *lua.LState) {
		panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: l.Get(-1), StackTrace: "-"})
	}
	defer s.raiseProperly(l)
	l.Call(l.GetTop()-1, lua.MultRet)
	return l.GetTop()
}

// raiseProperly makes errors of a panic that is none, as when the interpreter's stack is full. One that comes from a database must not be
// caught: see package rescue.
func (s *state) raiseProperly(l *lua.LState) {
	switch r := recover().(type) {
	case nil:
	case *lua.ApiError:
		panic(r)
	default:
		if rescue.InEngine("gotycoon/script.(*state).callQuietly") {
			rescue.Judge(s.pool.opts.Logger, "a script was being run", r, "gotycoon/script.(*state).callQuietly")
		}
		l.Error(lua.LString(fmt.Sprint(r)), 0)
	}
}

// handling returns the function that calls a handler where the error is raised. It raises the handler's result, so that the
// interpreter cuts the shared variables then.
func (s *state) handling(th *lua.LState, handler *lua.LFunction) *lua.LFunction {
	if handler == nil {
		return nil
	}
	return th.NewFunction(func(l *lua.LState) int {
		l.Push(handler)
		l.Push(l.Get(1))
		l.Call(1, 1)
		l.Error(l.Get(-1), 0)
		return 0
	})
}

// thread returns a thread in which nothing runs.
func (s *state) thread(l *lua.LState) *lua.LState {
	if n := len(s.spare); n > 0 {
		th := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return th
	}
	return s.newThread(l)
}

// newThread makes a thread on the leash of the state.
func (s *state) newThread(l *lua.LState) *lua.LState {
	leashed := l.Context() != nil
	if leashed {
		l.RemoveContext() // or the thread would get one of its own
	}
	th, _ := l.NewThread()
	if leashed {
		l.SetContext(s.leash)
	}
	th.SetContext(s.leash)
	return th
}

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
