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
