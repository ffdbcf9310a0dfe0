package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Options change while the server runs, count at once, and are what the file says after HUP.
func TestOptionsOfARunningServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kt.toml")
	require.NoError(t, os.WriteFile(path, []byte("ls = true\n[limits]\nmax-request = 1000000\n"), 0o600))
	s := start(t, "-config", path)
	set := func(name, value string) string { return s.get("/rpc/config_set?name=" + name + "&value=" + value) }
	require.Contains(t, s.get("/rpc/config_get?name=max-request"), "max-request\trunning=true secret=false source=\""+path+":3\" value=1000000\n")
	require.Equal(t, "lasts\tno, and not when HUP has "+path+" read again: put max-request = \"1 kB\" into it\n", set("max-request", "1+kB"))
	require.Contains(t, s.get("/rpc/config_get"), "max-request\trunning=true secret=false source=\"config set\" value=1 kB\n")
	require.Contains(t, s.get("/rpc/config_get"), "log-level\trunning=true secret=false source=\""+path+":1\" value=system\n", "the others stay")
	require.Contains(t, s.read("log"), "[SYSTEM]: option changed by 127.0.0.1:")
	require.Contains(t, s.read("log"), ": max-request=1 kB, before: 1000000, there after the next start: no")
	require.Equal(t, "lasts\tyes\n", set("max-request", "1000000"))
	require.Contains(t, set("log-level", "info"), "lasts\tno")
	s.get("/rpc/void")
	require.Contains(t, s.read("log"), "GET /rpc/void HTTP/1.1: 200")

	for name, want := range map[string]string{
		"port": "port cannot be changed while the server runs: put it into " + path + ", and start the server again", "mhost": "ktremotemgr tunerepl",
		"access": "a change of the file's content counts at once", "scr": "USR1", "max-requests": `is it "max-request"?`, "li": "change log-level",
		"tout": "tout: must be a number", "sync-replicas": "put it into", "compact-ratio": "compact-ratio: must be a number",
	} {
		status, body := s.ask("/rpc/config_set?name=" + name + "&value=x")
		require.Equal(t, 400, status, name)
		require.Contains(t, body, want, name)
	}
	status, body := s.ask("/rpc/config_set?name=compact-ratio&value=0.5")
	require.Equal(t, 400, status)
	require.Contains(t, body, "at least 1.2")
	status, _ = s.ask("/rpc/config_get?name=nothing")
	require.Equal(t, 400, status)

	s.signal(syscall.SIGHUP)
	require.Eventually(t, func() bool { return strings.Contains(s.read("log"), "configuration read again: changed: log-level") }, patience, time.Millisecond)
	s.signal(syscall.SIGTERM)
	require.Zero(t, s.exitCode())
}
