package script

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/internal/rescue"
)

// maxApart is how many protected calls may be inside each other, as in the reference interpreter.
const maxApart = 190

// protector makes protected calls. Each runs in a thread of its own.
//
// The reason is a fault of the library. A closure shares local variables with the function that
// made it, as long as that function runs. When an error is raised, the library ends this sharing
// for all functions of the thread: also for functions outside of the protected call, which go on
// afterwards, and whose closures have copies of the variables from then on:
//
//	local x = 1
//	local function f() x = 2 end
//	pcall(error)
//	f()                             -- without a thread of its own, x is still 1 below
//	print(x)
//
// A thread of its own contains only the functions that the protected call has called, and all of
// them end with the error.
type protector struct {
	leash   *leash
	logger  *slog.Logger
	quietly *lua.LFunction // callQuietly
	nested  int            // protected calls inside each other
	spare   []*lua.LState  // threads for them
}

func newProtector(l *lua.LState, leash *leash, logger *slog.Logger) *protector {
	p := &protector{leash: leash, logger: logger}
	p.quietly = l.NewFunction(p.callQuietly)
	return p
}

// raised is an error of a script on its way through Go.
type raised struct{ value lua.LValue }

// Error returns the text of the value.
func (e *raised) Error() string { return e.value.String() }

// apart calls f and returns as many results as wanted, or all with lua.MultRet. The error is the
// value that f has raised, or the result of the handler.
func (p *protector) apart(l *lua.LState, f lua.LValue, args []lua.LValue, wanted int, handler *lua.LFunction) ([]lua.LValue, error) {
	if p.nested >= maxApart {
		l.RaiseError("C stack overflow")
	}
	p.nested++
	current := l.G.CurrentThread // a coroutine that is resumed inside changes it
	defer func() { p.nested, l.G.CurrentThread = p.nested-1, current }()
	th := p.thread(l)
	if err := p.protected(th, f, args, wanted, handler); err != nil {
		th.SetTop(0)
		if e, ok := errors.AsType[*lua.ApiError](err); ok && e.Type != lua.ApiErrorPanic {
			p.spare = append(p.spare, th)
		}
		return nil, &raised{errorValue(err)}
	}
	results := make([]lua.LValue, th.GetTop())
	for i := range results {
		results[i] = th.Get(i + 1)
	}
	th.SetTop(0)
	p.spare = append(p.spare, th)
	return results, nil
}

// protected calls f in a thread in which nothing runs. It calls f through callQuietly, because the
// library otherwise adds a list of all calls to each error, which takes a second when the stack is
// full.
func (p *protector) protected(th *lua.LState, f lua.LValue, args []lua.LValue, wanted int, handler *lua.LFunction) error {
	th.Push(p.quietly)
	th.Push(f)
	for _, v := range args {
		th.Push(v)
	}
	return th.PCall(1+len(args), wanted, p.handling(th, handler))
}

// callQuietly calls its first argument with the other arguments.
func (p *protector) callQuietly(l *lua.LState) int {
	l.Panic = func(l *lua.LState) {
		panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: l.Get(-1), StackTrace: "-"})
	}
	defer p.raiseProperly(l)
	l.Call(l.GetTop()-1, lua.MultRet)
	return l.GetTop()
}

// raiseProperly turns a panic of the library, such as a full stack, into an error of the script. A
// panic of a database must not be caught, and a mistake in the program is logged: see package
// rescue.
func (p *protector) raiseProperly(l *lua.LState) {
	switch r := recover().(type) {
	case nil:
	case *lua.ApiError:
		panic(r)
	default:
		_, mistake := r.(runtime.Error)
		if mistake || rescue.InEngine("gotycoon/script.(*protector).callQuietly") {
			rescue.Judge(p.logger, "a script was being run", r, "gotycoon/script.(*protector).callQuietly")
		}
		l.Error(lua.LString(fmt.Sprint(r)), 0)
	}
}

// handling returns the function that calls the handler of xpcall where the error is raised. This
// function raises the handler's result as an error in its turn, so that the library ends the
// sharing of variables (see protector) only after the handler has run.
func (p *protector) handling(th *lua.LState, handler *lua.LFunction) *lua.LFunction {
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
func (p *protector) thread(l *lua.LState) *lua.LState {
	if n := len(p.spare); n > 0 {
		th := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return th
	}
	return p.newThread(l)
}

// newThread makes a thread on the leash of the interpreter.
func (p *protector) newThread(l *lua.LState) *lua.LState {
	leashed := l.Context() != nil
	if leashed {
		l.RemoveContext() // NewThread would derive a context of its own
	}
	th, _ := l.NewThread()
	if leashed {
		l.SetContext(p.leash)
	}
	th.SetContext(p.leash)
	return th
}

// errorValue returns the value that a failed call has raised.
func errorValue(err error) lua.LValue {
	if e, ok := errors.AsType[*lua.ApiError](err); ok && e.Object != nil {
		return e.Object
	}
	return lua.LString(err.Error())
}

func (p *protector) pcall(l *lua.LState) int {
	f := l.CheckAny(1)
	args := make([]lua.LValue, 0, l.GetTop())
	for i := 2; i <= l.GetTop(); i++ {
		args = append(args, l.Get(i))
	}
	return p.pushOutcome(l, f, args, nil)
}

func (p *protector) xpcall(l *lua.LState) int {
	return p.pushOutcome(l, l.CheckAny(1), nil, l.CheckFunction(2))
}

// pushOutcome calls f, and pushes true and its results, or false and the error.
func (p *protector) pushOutcome(l *lua.LState, f lua.LValue, args []lua.LValue, handler *lua.LFunction) int {
	results, err := p.apart(l, f, args, lua.MultRet, handler)
	if err == nil {
		l.Push(lua.LTrue)
		for _, v := range results {
			l.Push(v)
		}
		return 1 + len(results)
	}
	p.leash.check(l) // a script cannot catch its own stop
	l.Push(lua.LFalse)
	if e, ok := errors.AsType[*raised](err); ok {
		l.Push(e.value)
	} else {
		l.Push(lua.LString(err.Error()))
	}
	return 2
}

func baseError(l *lua.LState) int {
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

// whereAt returns the position of the function at a level of the calls, with a blank behind it. A
// function in Go has no position.
func whereAt(l *lua.LState, level int) string {
	if w := l.Where(level); w != "" && w != "[G]:" {
		return w + " "
	}
	return ""
}

// coroutines makes coroutines on the leash of their interpreter. The library would give each a
// context of its own, which would not stop with the script.
type coroutines struct {
	leash                *leash
	libCreate, libResume lua.LValue // of the library
}

// functions returns replacements for the library's functions that make and resume coroutines.
func (co coroutines) functions() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{"create": co.create, "resume": co.resume, "wrap": co.wrap}
}

func (co coroutines) create(l *lua.LState) int {
	f := l.CheckFunction(1)
	l.RemoveContext() // the library would derive a context of its own
	defer l.SetContext(co.leash)
	l.Push(co.libCreate)
	l.Push(f)
	l.Call(1, 1)
	if th, ok := l.Get(-1).(*lua.LState); ok {
		th.SetContext(co.leash)
	}
	return 1
}

func (co coroutines) resume(l *lua.LState) int {
	if status := l.Status(l.CheckThread(1)); status != "suspended" {
		// The library would even resume a coroutine that waits for another one.
		l.Push(lua.LFalse)
		l.Push(lua.LString("cannot resume " + status + " coroutine"))
		return 2
	}
	n := l.GetTop()
	l.Push(co.libResume)
	for i := 1; i <= n; i++ {
		l.Push(l.Get(i))
	}
	l.Call(n, lua.MultRet)
	co.leash.check(l)
	return l.GetTop() - n
}

func (co coroutines) wrap(l *lua.LState) int {
	co.create(l)
	th := l.Get(-1)
	l.Push(l.NewFunction(func(l *lua.LState) int {
		l.Insert(th, 1)
		n := co.resume(l)
		if l.Get(-n) == lua.LTrue {
			return n - 1
		}
		l.Error(l.Get(-1), 0)
		return 0
	}))
	return 1
}
