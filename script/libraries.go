package script

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// openLibraries opens the standard libraries with what is replaced or added here.
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
	s.concat = l.NewFunction(s.join)
	s.replace(globals, s.baseFunctions())
	s.replace(s.library("string"), s.stringFunctions())
	s.replace(s.library("table"), s.tableFunctions())
	s.replace(s.library("coroutine"), s.coroutineFunctions())
	s.replace(s.library("os"), map[string]lua.LGFunction{"exit": s.osExit, "execute": s.osExecute})
	s.ioFunctions()
	s.replace(s.library("debug"), map[string]lua.LGFunction{"getmetatable": s.baseGetMetatable, "setmetatable": s.baseSetMetatable,
		"sethook": nothing, "gethook": nothing})
	s.library("math").RawSetString("huge", lua.LNumber(math.Inf(1)))
	s.library("string").RawSetString("__index", lua.LNil)
	if loaders, ok := l.GetField(s.library("package"), "loaders").(*lua.LTable); ok {
		loaders.RawSetInt(2, l.NewFunction(s.searchModule))
	}
	s.installTypes(s.library("string"))
}

func (s *state) library(name string) *lua.LTable {
	return s.l.G.Global.RawGetString(name).(*lua.LTable)
}

func (s *state) replace(t *lua.LTable, functions map[string]lua.LGFunction) {
	for name, f := range functions {
		t.RawSetString(name, s.l.NewFunction(f))
	}
}

// nothing is a function without effect and results.
func nothing(*lua.LState) int { return 0 }

// osExit ends the server where it is told how, as in the original. Elsewhere it is an error of the script.
func (s *state) osExit(l *lua.LState) int {
	if s.pool.opts.Exit == nil {
		l.RaiseError("os.exit is not available here")
	}
	s.pool.opts.Exit(optInt(l, 1, 0))
	s.leash.pull(errStopping)
	s.leash.check(l)
	return 0
}
