package script

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// ioLib is what the library io, and os.execute, must not do without a look at the budget.
type ioLib struct{ budget }

// install replaces the functions that read as much as there is, whatever that is, and the one that makes a buffer of any size, with the functions of
// the interpreter below them.
func (lib ioLib) install(l *lua.LState, library *lua.LTable) {
	library.RawSetString("read", l.NewFunction(lib.boundedRead(library.RawGetString("read"), 1)))
	if methods, ok := l.GetTypeMetatable("FILE*").(*lua.LTable); ok {
		methods.RawSetString("read", l.NewFunction(lib.boundedRead(methods.RawGetString("read"), 2)))
		methods.RawSetString("setvbuf", l.NewFunction(lib.boundedBuffer(methods.RawGetString("setvbuf"))))
	}
}

// boundedBuffer is setvbuf of the interpreter, whose third argument is the size of a buffer.
func (lib ioLib) boundedBuffer(setvbuf lua.LValue) lua.LGFunction {
	return func(l *lua.LState) int {
		top := l.GetTop()
		if size, ok := l.Get(3).(lua.LNumber); ok {
			lib.allow(l, float64(size))
		}
		l.Push(setvbuf)
		for i := 1; i <= top; i++ {
			l.Push(l.Get(i))
		}
		l.Call(top, lua.MultRet)
		return l.GetTop() - top
	}
}

// readPiece is how many bytes are read at once of what is read to its end.
const readPiece = 64 << 10

// boundedRead is read of the interpreter, whose formats begin at an argument, given what it has to read in pieces for which there is room.
func (lib ioLib) boundedRead(read lua.LValue, first int) lua.LGFunction {
	return func(l *lua.LState) int {
		if l.GetTop() < first {
			l.Push(lua.LString("*l"))
		}
		last := l.GetTop()
		for i := first; i <= last; i++ {
			format := l.Get(i)
			if f, ok := format.(lua.LNumber); ok && f > largeText {
				lib.allow(l, float64(f))
			}
			if t, ok := format.(lua.LString); ok && t == "*a" {
				lib.readAll(l, read, first)
				continue
			}
			if lib.readOne(l, read, first, format); l.Get(last+i-first+1) == lua.LNil {
				break
			}
		}
		return l.GetTop() - last
	}
}

// readOne calls read for one format, which pushes what it has read, or nil and perhaps why.
func (lib ioLib) readOne(l *lua.LState, read lua.LValue, first int, format lua.LValue) {
	l.Push(read)
	for i := 1; i < first; i++ {
		l.Push(l.Get(i))
	}
	l.Push(format)
	l.Call(first, lua.MultRet)
}

// readAll pushes all that is left of a file.
func (lib ioLib) readAll(l *lua.LState, read lua.LValue, first int) {
	var out strings.Builder
	top := l.GetTop()
	for {
		lib.allow(l, float64(out.Len()+readPiece))
		lib.readOne(l, read, first, lua.LNumber(readPiece))
		piece, ok := l.Get(top + 1).(lua.LString)
		l.SetTop(top)
		lib.leash.check(l)
		if !ok || piece == "" {
			lib.pushNew(l, out.String())
			return
		}
		out.WriteString(string(piece))
	}
}

// execute runs a program and waits for its end. When the script has to stop, so has the program, with those that it has started.
func (lib ioLib) execute(l *lua.LState) int {
	cmd := exec.Command("/bin/sh", "-c", checkText(l, 1))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		l.Push(lua.LNumber(1))
		return 1
	}
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	ticker := time.NewTicker(sleepSlice)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			status := lua.LNumber(0)
			if err != nil {
				status = 1
			}
			l.Push(status)
			return 1
		case <-ticker.C:
			lib.leash.listen()
		case <-lib.leash.done:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
			<-ended
			lib.leash.check(l)
			return 0
		}
	}
}
