package script

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// openLibraries opens the standard libraries. Functions whose results differ from those of the
// reference interpreter, or that know no limits, are replaced by our own.
func (s *state) openLibraries() {
	l := s.l
	for _, open := range []struct {
		name string
		f    lua.LGFunction
	}{
		{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}, {lua.IoLibName, lua.OpenIo},
		{lua.OsLibName, lua.OpenOs}, {lua.StringLibName, lua.OpenString}, {lua.MathLibName, lua.OpenMath},
		{lua.DebugLibName, lua.OpenDebug}, {lua.CoroutineLibName, lua.OpenCoroutine},
	} {
		l.Push(l.NewFunction(open.f))
		l.Push(lua.LString(open.name))
		l.Call(1, 0)
	}
	globals := l.G.Global
	globals.RawSetString("_GOPHER_LUA_VERSION", lua.LNil)
	globals.RawSetString("_printregs", lua.LNil)
	table := func(name string) *lua.LTable { return globals.RawGetString(name).(*lua.LTable) }
	coroutine := table("coroutine")
	threads := coroutines{s.leash, coroutine.RawGetString("create"), coroutine.RawGetString("resume")}
	files := ioLib{s.budget}
	l.SetFuncs(globals, s.baseFunctions())
	l.SetFuncs(table("string"), stringLib{s.budget}.functions())
	l.SetFuncs(table("table"), tableLib{s.budget}.functions())
	l.SetFuncs(coroutine, threads.functions())
	l.SetFuncs(table("os"), map[string]lua.LGFunction{"exit": s.osExit, "execute": files.execute})
	files.install(l, table("io"))
	l.SetFuncs(table("debug"), map[string]lua.LGFunction{"getmetatable": baseGetMetatable, "setmetatable": baseSetMetatable,
		"sethook": nothing, "gethook": nothing})
	table("math").RawSetString("huge", lua.LNumber(math.Inf(1)))
	table("string").RawSetString("__index", lua.LNil)
	if loaders, ok := l.GetField(table("package"), "loaders").(*lua.LTable); ok {
		loaders.RawSetInt(2, l.NewFunction(s.loader.searchModule))
	}
	installOperators(l, s.budget, table("string"))
}

// nothing is a function without effect and results.
func nothing(*lua.LState) int { return 0 }

// osExit serves os.exit: it stops the server with Options.Exit. Without Exit it is an error of the
// script.
func (s *state) osExit(l *lua.LState) int {
	if s.pool.opts.Exit == nil {
		l.RaiseError("os.exit is not available here")
	}
	s.pool.opts.Exit(optInt(l, 1, 0))
	s.leash.pull(errStopping)
	s.leash.check(l)
	return 0
}

// baseFunctions returns the global functions that replace those of the library.
func (s *state) baseFunctions() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"tostring": baseToString, "tonumber": baseToNumber, "print": s.print, "getmetatable": baseGetMetatable,
		"setmetatable": baseSetMetatable, "collectgarbage": baseCollectGarbage, "gcinfo": baseGCInfo, "assert": baseAssert,
		"select": baseSelect, "load": s.loader.loadFrom, "loadstring": s.loader.loadString, "loadfile": s.loader.loadFile,
		"dofile": s.loader.doFile, "pcall": s.protector.pcall, "xpcall": s.protector.xpcall, "error": baseError, "unpack": baseUnpack,
	}
}

// valueText is tostring.
func valueText(l *lua.LState, v lua.LValue) lua.LValue {
	if own := ownMetamethod(l, v, "__tostring"); own != lua.LNil {
		l.Push(own)
		l.Push(v)
		l.Call(1, 1)
		result := l.Get(-1)
		l.Pop(1)
		return result
	}
	if t, ok := text(v); ok {
		return lua.LString(t)
	}
	return lua.LString(v.String())
}

func baseToString(l *lua.LState) int {
	l.Push(valueText(l, l.CheckAny(1)))
	return 1
}

func baseToNumber(l *lua.LState) int {
	v := l.CheckAny(1)
	base := optInt(l, 2, 10)
	if base < 2 || base > 36 {
		l.ArgError(2, "base out of range")
	}
	f, ok := number(v)
	if base != 10 {
		f, ok = parseBase(checkText(l, 1), base)
	}
	if !ok {
		l.Push(lua.LNil)
		return 1
	}
	l.Push(lua.LNumber(f))
	return 1
}

func (s *state) print(l *lua.LState) int {
	var line strings.Builder
	for i := 1; i <= l.GetTop(); i++ {
		if i > 1 {
			line.WriteByte('\t')
		}
		t, ok := text(valueText(l, l.Get(i)))
		if !ok {
			l.RaiseError("'tostring' must return a string to 'print'")
		}
		s.allow(l, float64(line.Len()+len(t)))
		line.WriteString(t)
	}
	line.WriteByte('\n')
	_, _ = fmt.Fprint(os.Stdout, line.String()) // as in C, print has no error
	return 0
}

func baseGetMetatable(l *lua.LState) int {
	v := l.CheckAny(1)
	switch v.Type() {
	case lua.LTTable, lua.LTUserData, lua.LTString:
		l.Push(l.GetMetatable(v))
	default:
		l.Push(lua.LNil)
	}
	return 1
}

func baseSetMetatable(l *lua.LState) int {
	t, ok := l.Get(1).(*lua.LTable)
	if !ok {
		badType(l, 1, "table")
	}
	mt := l.Get(2)
	if mt != lua.LNil && mt.Type() != lua.LTTable || l.GetTop() < 2 {
		l.ArgError(2, "nil or table expected")
	}
	if l.GetMetaField(t, "__metatable") != lua.LNil {
		l.RaiseError("cannot change a protected metatable")
	}
	l.SetMetatable(t, mt)
	l.Push(t)
	return 1
}

// baseCollectGarbage answers how much memory is in use and ignores all other requests: the
// collector is the server's.
func baseCollectGarbage(l *lua.LState) int {
	switch l.OptString(1, "collect") {
	case "count":
		return baseGCInfo(l)
	case "collect", "stop", "restart", "step", "setpause", "setstepmul":
		l.Push(lua.LNumber(0))
		return 1
	}
	l.ArgError(1, "invalid option '"+l.OptString(1, "")+"'")
	return 0
}

func baseGCInfo(l *lua.LState) int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	l.Push(lua.LNumber(float64(m.HeapAlloc) / 1024))
	return 1
}

func baseAssert(l *lua.LState) int {
	if !l.ToBool(1) {
		l.CheckAny(1)
		message, ok := text(l.Get(2))
		if !ok {
			message = "assertion failed!"
		}
		l.Error(lua.LString(message), 0)
	}
	return l.GetTop()
}

func baseSelect(l *lua.LState) int {
	if l.Get(1) == lua.LString("#") {
		l.Push(lua.LNumber(l.GetTop() - 1))
		return 1
	}
	n, i := l.GetTop(), checkInt(l, 1)
	if i < 0 {
		i += n
	}
	if i < 1 {
		l.ArgError(1, "index out of range")
	}
	return max(n-i, 0)
}

func baseUnpack(l *lua.LState) int {
	t := l.CheckTable(1)
	from, to := optInt(l, 2, 1), optInt(l, 3, t.Len())
	if from > to {
		return 0
	}
	if to-from >= maxUnpack {
		l.RaiseError("too many results to unpack")
	}
	for i := from; i <= to; i++ {
		l.Push(t.RawGetInt(i))
	}
	return to - from + 1
}

// maxUnpack is how many results unpack may have.
const maxUnpack = 1 << 20
