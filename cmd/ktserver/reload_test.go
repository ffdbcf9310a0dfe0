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

func TestHangupReadsTheFileAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kt.toml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("ls = true\ntout = 30\nth = 4\nmport = 5\n")
	s := start(t, "-config", path, "-mport", "6")
	open := s.dial()
	says := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(s.read("log"), text) }, patience, time.Millisecond)
	}

	write("li = true\ntout = 20\nth = 5\nmport = 7\n[snapshots]\nbgsi = 5\n")
	s.signal(syscall.SIGHUP)
	says("[SYSTEM]: configuration read again: changed: tout log-level bgsi")
	says("[ERROR]: these options change with the next start only: th\n") // not mport: the command line counts more
	require.NotContains(t, s.read("log"), "GET /rpc/void")
	s.get("/rpc/void")
	says("GET /rpc/void HTTP/1.1: 200") // the level that came with the signal

	write("tout = x\n")
	s.signal(syscall.SIGHUP)
	says("[ERROR]: reading the configuration again, everything stays as it is: " + path + ":1: tout: must be a number")
	require.NoError(t, os.Rename(filepath.Join(s.dir, "log"), filepath.Join(s.dir, "old")))
	write("li = true\ntout = 20\nth = 5\nmport = 7\n[snapshots]\nbgsi = 5\n")
	s.signal(syscall.SIGHUP)
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(s.dir, "log")); return err == nil }, patience, time.Millisecond)
	says("configuration read again: changed: nothing")

	_, err := open.Write([]byte("GET /rpc/echo?a=b HTTP/1.1\r\n\r\n")) // connections live on
	require.NoError(t, err)
	reply := make([]byte, 12)
	_, err = open.Read(reply)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 200", string(reply))
	s.signal(syscall.SIGTERM)
	require.Zero(t, s.exitCode())
}

// Without a file of options the signal means what it does in the original.
func TestHangupWithoutAFile(t *testing.T) {
	t.Setenv("GOTYCOON_TH", "5")
	s := start(t, "-ls")
	s.signal(syscall.SIGHUP)
	require.Zero(t, s.exitCode())
}
