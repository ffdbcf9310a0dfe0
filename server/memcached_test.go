package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
	"gotycoon/internal/klog"
	"gotycoon/server"
)

// plugged is the configuration of a server with the memcached plug-in.
func plugged(plex string) func(*server.Config) {
	return func(c *server.Config) {
		c.LogLevel = klog.LevelSystem
		c.Plugins.Server, c.Plugins.Expr = "/nowhere/ktplugservmemc.so", plex
	}
}

func TestLogOfAPlugin(t *testing.T) {
	port := freeport.Take(t)
	s := start(t, plugged(fmt.Sprintf("port=%d#th=x", port)))
	eventually(t, func() bool { return len(s.log.lines()) == 11 })
	require.Zero(t, s.stop())
	listen := []string{
		"[SYSTEM]: starting the server: expr=:PORT",
		"[SYSTEM]: server socket opened: expr=:PORT timeout=30.0",
		"[SYSTEM]: listening server socket started: fd=N",
	}
	stop := []string{"[SYSTEM]: server stopped", "[SYSTEM]: finishing the server", "[SYSTEM]: closing the server socket"}
	require.Equal(t, slices.Concat([]string{
		"[SYSTEM]: ================ [START]: pid=N",
		"[SYSTEM]: warning: -plex: th=x is no number above 0, and the default counts",
		"[SYSTEM]: opening a database: path=:",
		"[SYSTEM]: loading a plug-in server file: path=/nowhere/ktplugservmemc.so",
		fmt.Sprintf("[SYSTEM]: the plug-in memcached server configured: expr=port=%d#th=x", port),
	}, listen, listen, stop, stop, []string{
		"[SYSTEM]: closing a database: path=:",
		"[SYSTEM]: ================ [FINISH]: pid=N",
	}), s.log.lines())
}

// A plug-in that cannot run lets the data port run, and makes the exit code 1.
func TestPluginsThatDoNotRun(t *testing.T) {
	busy, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	port := busy.Addr().(*net.TCPAddr).Port
	for plex, want := range map[string]string{
		"opts=qr":                   "[ERROR]: message queue cannot be read-only",
		"host=no.such.host.invalid": "[ERROR]: unknown host: no.such.host.invalid",
		fmt.Sprintf("host=127.0.0.1#port=%d", port): "[ERROR]: socket error: expr=PEER msg=bind failed",
	} {
		s := start(t, plugged(plex))
		status, _ := s.dial().get("/rpc/void")
		require.Equal(t, 200, status)
		require.Equal(t, 1, s.stop(), plex)
		require.Contains(t, s.log.lines(), want)
		require.Contains(t, s.log.lines(), "[ERROR]: not running")
	}
}

func TestConfigurationsThatDoNotStart(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*server.Config)
		lines  []string // of the log, behind the first
	}{
		"another plug-in server": {func(c *server.Config) { c.Plugins.Server = "no.so" }, []string{
			"[SYSTEM]: opening a database: path=:", "[INFO]: durability", "[INFO]: protected",
			"[SYSTEM]: loading a plug-in server file: path=no.so", "[ERROR]: could not load a plug-in server file: no.so"}},
		"another engine": {func(c *server.Config) { c.Plugins.Database = "no.so" }, []string{
			"[SYSTEM]: loading a plug-in database file: path=no.so", "[ERROR]: could not load a plug-in database file: no.so"}},
		"two services":             {func(c *server.Config) { c.Plugins.Server, c.Plugins.MemcachePort = "ktplugservmemc.so", 1 }, nil},
		"a daemon's relative path": {func(c *server.Config) { c.Daemon, c.Plugins.Database = true, "ktplugdbvoid.so" }, nil},
	} {
		cfg := server.DefaultConfig()
		row.change(&cfg)
		var log buffer
		require.Equal(t, 1, server.Run(context.Background(), cfg, &log, io.Discard), name)
		if row.lines != nil {
			require.Equal(t, row.lines, log.lines()[1:], name)
		} else {
			require.Empty(t, log.lines(), name)
		}
	}
}

// ask sends lines to a port and returns the first line of the answer, "" when nobody listens.
func ask(port int, lines string) string {
	c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return ""
	}
	defer c.Close()
	fmt.Fprint(c, lines)
	room := make([]byte, 1000)
	n, _ := c.Read(room)
	line, _, _ := strings.Cut(string(room[:n]), "\r\n")
	return line
}

func TestMemcachePortAndRestart(t *testing.T) {
	port := freeport.Take(t)
	s := start(t, func(c *server.Config) { c.LogLevel, c.Plugins.MemcachePort = klog.LevelSystem, port })
	eventually(t, func() bool { return ask(port, "set a 7 0 1\r\nx\r\n") == "STORED" })
	status, body := s.dial().get("/rpc/get?key=a")
	require.Equal(t, 200, status)
	require.Contains(t, body, "value")
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGUSR1))
	eventually(t, func() bool { return strings.Count(fmt.Sprint(s.log.lines()), "listening") == 4 })
	eventually(t, func() bool { return ask(port, "get a\r\n") == "VALUE a 7 1" })
	require.Zero(t, s.stop())
}
