package compat

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
)

// start replays a start that fails, or one that works and is ended by a signal.
func (l *life) start(t *testing.T) (difference string) {
	port := freeport.Take(t)
	if l.Name == "start-port-in-use" {
		ln, err := net.Listen("tcp4", ":"+strconv.Itoa(port))
		require.NoError(t, err)
		defer ln.Close()
	}
	if l.Name == "start-scr-syntax-error" {
		require.NoError(t, os.WriteFile(filepath.Join(l.dir, "bad.lua"), []byte("this is not lua"), 0o600))
	}
	if l.ExitCode != 0 {
		l.server = ktproc.Launch(t, l.launchOptions(), port)
		return l.exit(t)
	}
	l.server = ktproc.Start(t, l.opts)
	l.server.Signal(t, syscall.SIGTERM)
	return l.exitQuietly(t)
}

// launchOptions has no -- before the databases where the case is about that.
func (l *life) launchOptions() ktproc.Options {
	o := l.opts
	o.BareDBs = l.Name == "start-missing-option-argument" || l.Name == "start-dash-db-without-dashdash"
	return o
}

// exitQuietly is exit for a recording that nobody connected to.
func (l *life) exitQuietly(t *testing.T) (difference string) {
	require.Equal(t, l.ExitCode, l.server.ExitCode(t))
	lines := slices.DeleteFunc(l.mask(l.server.Output()), func(s string) bool {
		return s == "@TS@: [INFO]: connected: expr=@PEER@" || s == "@TS@: [INFO]: disconnecting: expr=@PEER@"
	})
	return compareLines(l.Output, lines)
}

// logLines replays requests of every kind and compares the lines about them.
func (l *life) logLines(t *testing.T) (difference string) {
	if slices.Contains(l.Args, "-ord") {
		l.prepareFile(t)
	}
	l.server = ktproc.Start(t, l.opts)
	informed := slices.Contains(l.Output, "@TS@: [INFO]: connected: expr=@PEER@")
	if informed {
		awaitLines(t, l.server.Output, disconnected, 1)
	}
	c := l.dial(t)
	for _, action := range l.Actions {
		l.act(t, c, action)
	}
	require.NoError(t, c.Close())
	if informed {
		awaitLines(t, l.server.Output, disconnected, 2)
	}
	l.server.Signal(t, syscall.SIGTERM)
	return l.exit(t)
}

// prepareFile makes the database file of a read-only server.
func (l *life) prepareFile(t *testing.T) {
	t.Helper()
	o := l.opts
	o.Args = nil
	ktproc.Start(t, o).Stop(t)
}

// act does one of the recorded actions.
func (l *life) act(t *testing.T, c *replayConn, action string) {
	t.Helper()
	switch action {
	case "GET /rpc/get?key=a", "GET /a":
		c.ask(t, action+" HTTP/1.1\r\n\r\n")
	case "PUT /a":
		c.ask(t, "PUT /a HTTP/1.1\r\nContent-Length: 1\r\n\r\nv")
	case "POST /rpc/set":
		c.ask(t, post("set", "key\ta\nvalue\tb\n"))
	case "binary get_bulk of 0 records":
		c.send("\xba\x00\x00\x00\x00\x00\x00\x00\x00", 0, 0)
		for deadline := time.Now().Add(answerLimit); len(c.buf) < 5 && c.fill(deadline); {
		}
		require.Equal(t, "\xba\x00\x00\x00\x00", string(c.buf))
		c.buf = nil
	case "unknown magic 0xC3":
		c.send("\xc3", 0, 0)
		c.awaitEOF(t, eofLimit)
	default:
		t.Fatalf("unknown action %q", action)
	}
}
