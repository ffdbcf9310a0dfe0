package main

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/server"
)

func TestScriptOptions(t *testing.T) {
	o, err := parse([]string{"-scr", "s.lua", "-scrtime", "1.5", "-scrmem", "2m"})
	require.NoError(t, err)
	require.Equal(t, server.ScriptConfig{Path: "s.lua", Time: 1500 * time.Millisecond, Memory: 2 << 20}, o.Script)
}

// The signal USR1 has the script read again; its variables begin anew and the databases stay.
func TestScriptIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.lua")
	write := func(source string) { require.NoError(t, os.WriteFile(path, []byte(source), 0o600)) }
	write(`function f(i, o) n = (n or 0) + 1 o.n = n __kyototycoon__.db:set("kept", "yes") end`)
	s := start(t, "-scr", path, "-th", "1", "-ls", ":")
	require.Equal(t, "_n\t1\n", s.get("/rpc/play_script?name=f"))
	require.Equal(t, "_n\t2\n", s.get("/rpc/play_script?name=f"))
	write(`function g(i, o) o.kept = __kyototycoon__.db:get("kept") end`)
	s.signal(syscall.SIGUSR1)
	require.Eventually(t, func() bool { return s.get("/rpc/play_script?name=g") == "_kept\tyes\n" }, patience, time.Millisecond)
	require.Equal(t, "ERROR\tno such scripting procedure\n", s.get("/rpc/play_script?name=f"))
	s.signal(syscall.SIGTERM)
	require.Zero(t, s.exitCode())
	lines := s.log("log")
	require.Contains(t, lines, "[SYSTEM]: reloading a script file: path="+path, lines)
	require.Less(t, slices.Index(lines, "[SYSTEM]: loading a script file: path="+path), slices.Index(lines, "[SYSTEM]: starting the server: expr="))
}

func TestScriptEndsTheServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.lua")
	require.NoError(t, os.WriteFile(path, []byte(`function bye() os.exit(7) end`), 0o600))
	s := start(t, "-scr", path, "-ls", ":")
	require.Contains(t, s.get("/rpc/play_script?name=bye"), "ERROR")
	require.Equal(t, 7, s.exitCode())
	require.Contains(t, s.read("log"), "[FINISH]")
}

// A call that does not end does not keep the server from stopping.
func TestEndlessScriptDoesNotKeepTheServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.lua")
	require.NoError(t, os.WriteFile(path, []byte(`function spin() __kyototycoon__.log("error", "spinning") while true do end end`), 0o600))
	s := start(t, "-scr", path, "-tout", "0.2", "-ls", ":")
	c := s.dial()
	_, err := c.Write([]byte("GET /rpc/play_script?name=spin HTTP/1.1\r\n\r\n"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return len(s.read("log")) > 0 && slices.Contains(s.log("log"), "[ERROR]: [SCRIPT]: spinning")
	}, patience, time.Millisecond)
	s.signal(syscall.SIGTERM)
	require.Zero(t, s.exitCode())
}

// With a transaction open for everybody the server stops, and nothing of it is left.
func TestOpenTransactionIsRolledBackAtTheStop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.lua")
	require.NoError(t, os.WriteFile(path, []byte(`function begin() return __kyototycoon__.db:begin_transaction() and 0 or 5 end`), 0o600))
	s := start(t, "-scr", path, "-ls", "a.kct")
	s.get("/rpc/set?key=before&value=1")
	require.Empty(t, s.get("/rpc/play_script?name=begin"))
	s.get("/rpc/set?key=within&value=2")
	require.Equal(t, "value\t2\n", s.get("/rpc/get?key=within"))
	s.signal(syscall.SIGTERM)
	require.Zero(t, s.exitCode())

	again := start(t, "-ls", filepath.Join(s.dir, "a.kct"))
	require.Equal(t, "value\t1\n", again.get("/rpc/get?key=before"))
	require.Contains(t, again.get("/rpc/get?key=within"), "no record")
}
