package script

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// ioLib replaces functions of the library io that would read or allocate without a limit, and
// os.execute.
type ioLib struct{ budget }

// install replaces the library's functions by our own, which call them.
func (lib ioLib) install(l *lua.LState, library *lua.LTable) {
	library.RawSetString("read", l.NewFunction(lib.boundedRead(library.RawGetString("read"), 1)))
	if methods, ok := l.GetTypeMetatable("FILE*").(*lua.LTable); ok {
		methods.RawSetString("read", l.NewFunction(lib.boundedRead(methods.RawGetString("read"), 2)))
		methods.RawSetString("setvbuf", l.NewFunction(lib.boundedBuffer(methods.RawGetString("setvbuf"))))
	}
}

// boundedBuffer returns a setvbuf that asks for room before it makes a buffer. Argument 3 is the
// size.
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

// readPiece is how many bytes a read to the end of a file takes at a time.
const readPiece = 64 << 10

// boundedRead returns a read whose formats begin at argument first. It asks for room before each
// piece.
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

// readOne calls the library's read for one format. It pushes the value, or nil and perhaps a
// message.
func (lib ioLib) readOne(l *lua.LState, read lua.LValue, first int, format lua.LValue) {
	l.Push(read)
	for i := 1; i < first; i++ {
		l.Push(l.Get(i))
	}
	l.Push(format)
	l.Call(first, lua.MultRet)
}

// readAll pushes the rest of a file.
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

// execute serves os.execute: it runs a program and waits for its end. If the script has to stop,
// the program is killed, with all processes that it has started.
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
