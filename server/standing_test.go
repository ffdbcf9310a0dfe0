package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/server"
)

// awaitProbe waits until a probe has a status, and returns what it says.
func awaitProbe(t *testing.T, addr, path string, want int) (body string) {
	t.Helper()
	status := 0
	require.Eventually(t, func() bool { status, body = fetch(t, addr, path); return status == want }, patience, time.Millisecond,
		"%s of %s", path, addr)
	return body
}

func TestProbesOfTheRole(t *testing.T) {
	dir := t.TempDir()
	master, masterAdmin := startAdmin(t, func(c *server.Config) { c.UpdateLog, c.ServerID = filepath.Join(dir, "ulog"), 1 })
	require.Regexp(t, `^primary since \S+Z\n$`, awaitProbe(t, masterAdmin, "/primary", 200))
	require.Regexp(t, `^primary since `, awaitProbe(t, masterAdmin, "/replica", 503))
	require.Regexp(t, `^primary since `, awaitProbe(t, masterAdmin, "/replica?max-lag=5", 503))
	rows := master.dial().rows("/rpc/report")
	require.NotContains(t, rows, "repl_role", "a server that was nothing else has the original's rows")
	require.NotContains(t, rows, "repl_primary", "it does not know under which address clients reach it")

	slave, slaveAdmin := startAdmin(t, func(c *server.Config) {
		c.ServerID, c.RTSPath, c.MasterHost, c.MasterPort = 2, filepath.Join(dir, "rts"), "127.0.0.1", master.port()
		c.UpdateLog = filepath.Join(dir, "ulog2")
	})
	awaitProbe(t, slaveAdmin, "/replica", 200)
	place := fmt.Sprintf(`replica since \S+Z, primary: 127\.0\.0\.1:%d\n$`, master.port())
	require.Regexp(t, place, awaitProbe(t, slaveAdmin, "/replica?max-lag=10", 200))
	require.Regexp(t, place, awaitProbe(t, slaveAdmin, "/primary", 503))
	for _, wrong := range []string{"", "x", "-1", "NaN", "1e30", "Inf"} {
		status, body := fetch(t, slaveAdmin, "/replica?max-lag="+wrong)
		require.Equal(t, http.StatusBadRequest, status, wrong)
		require.Contains(t, body, "max-lag is a number of seconds")
	}
	c := slave.dial()
	require.Equal(t, "replica", c.rows("/rpc/report")["repl_role"])
	require.Equal(t, fmt.Sprintf("127.0.0.1:%d", master.port()), c.rows("/rpc/report")["repl_primary"])
	_, text := fetch(t, slaveAdmin, "/metrics")
	require.InDelta(t, 1, sample(t, text, `gotycoon_role{role="replica"}`), 0)

	// Without its master it is still a replica, but further behind with every moment.
	require.Zero(t, master.stop())
	awaitProbe(t, slaveAdmin, "/replica", 200)
	require.Contains(t, awaitProbe(t, slaveAdmin, "/replica?max-lag=0.01", 503), "more than the 0.0 s of max-lag")

	// A takeover: it follows nobody and refuses updates, then it is the primary.
	c.get("/rpc/tune_replication?readonly=true")
	require.Equal(t, "replica", c.rows("/rpc/report")["repl_role"])
	c.get("/rpc/tune_replication")
	require.Regexp(t, `^none since \S+Z\n$`, awaitProbe(t, slaveAdmin, "/primary", 503))
	awaitProbe(t, slaveAdmin, "/replica", 503)
	c.get("/rpc/tune_replication?readonly=false")
	awaitProbe(t, slaveAdmin, "/primary", 200)
	require.Equal(t, "primary", c.rows("/rpc/report")["repl_role"])
}

// A server that was to follow a master and cannot is no primary: its data may be old.
func TestAServerThatCannotFollowIsNoPrimary(t *testing.T) {
	dir := t.TempDir()
	s, addr := startAdmin(t, func(c *server.Config) { // a directory cannot be the RTS file
		c.ServerID, c.RTSPath, c.MasterHost, c.MasterPort = 2, dir, "192.0.2.1", 1978
	})
	ready(t, addr)
	require.Regexp(t, `^none since \S+Z, primary: 192\.0\.2\.1:1978\n$`, awaitProbe(t, addr, "/primary", 503))
	awaitProbe(t, addr, "/replica", 503)
	require.Zero(t, s.stop())
	s, addr = startAdmin(t, func(c *server.Config) { c.ServerID, c.RTSPath = 2, dir })
	awaitProbe(t, addr, "/primary", 200)
	require.Zero(t, s.stop())
}

func TestAReadOnlyServerIsNoPrimary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.kch")
	s := start(t, func(c *server.Config) { c.Databases = []string{path} })
	require.Zero(t, s.stop())
	_, addr := startAdmin(t, func(c *server.Config) { c.Databases, c.ReadOnly = []string{path}, true })
	require.Regexp(t, "^none since ", awaitProbe(t, addr, "/primary", 503))
}

// Everybody may see the status of the probes, only clients with rights who the primary is.
func TestProbesOfTheRoleHideTheirReasons(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access")
	require.NoError(t, os.WriteFile(path, []byte("allow anyone read from=192.0.2.1\n"), 0o600))
	_, addr := startAdmin(t, func(c *server.Config) { c.Access.Path = path })
	require.Equal(t, "ok\n", awaitProbe(t, addr, "/primary", 200))
	require.Equal(t, "no\n", awaitProbe(t, addr, "/replica", 503))
}

// hook writes a program for -on-role that appends its arguments and its environment to a file.
func hook(t *testing.T, dir string) (program string, lines func() []string) {
	t.Helper()
	program, out := filepath.Join(dir, "hook"), filepath.Join(dir, "told")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"+
		`echo "$# $1 $2 $3 $4 $KTSERVER_ROLE $KTSERVER_FORMER_ROLE $KTSERVER_TERM $KTSERVER_PRIMARY" >>`+out+"\n"), 0o700))
	return program, func() []string {
		text, _ := os.ReadFile(out)
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
}

func TestRoleCommand(t *testing.T) {
	dir := t.TempDir()
	program, told := hook(t, dir)
	s, addr := startAdmin(t, func(c *server.Config) { c.ServerID, c.RTSPath, c.OnRole = 2, filepath.Join(dir, "rts"), program })
	want := []string{"4 primary none 0  primary none 0 "}
	require.Eventually(t, func() bool { return fmt.Sprint(told()) == fmt.Sprint(want) }, patience, time.Millisecond)
	c := s.dial()
	for _, step := range []struct{ path, line string }{
		{"/rpc/tune_replication?host=127.0.0.1&port=1", "4 replica primary 0 127.0.0.1:1 replica primary 0 127.0.0.1:1"},
		{"/rpc/tune_replication?host=127.0.0.1&port=2", "4 replica replica 0 127.0.0.1:2 replica replica 0 127.0.0.1:2"},
		{"/rpc/tune_replication", "4 primary replica 0  primary replica 0 "},
		{"/rpc/tune_replication?readonly=true", "4 none primary 0  none primary 0 "},
		{"/rpc/tune_replication?readonly=false", "4 primary none 0  primary none 0 "},
	} {
		c.get(step.path)
		want = append(want, step.line)
		require.Eventually(t, func() bool { return fmt.Sprint(told()) == fmt.Sprint(want) }, patience, time.Millisecond, step.line)
	}
	_, text := fetch(t, addr, "/metrics")
	require.InDelta(t, len(want), sample(t, text, "gotycoon_role_commands_total"), 0)
	require.InDelta(t, 0, sample(t, text, "gotycoon_role_command_failures_total"), 0)

	// The last change before the stop is told too.
	c.get("/rpc/tune_replication?host=127.0.0.1&port=1")
	require.Zero(t, s.stop())
	require.Contains(t, told()[len(told())-1], "4 replica primary 0 127.0.0.1:1")
}

func TestRoleCommandThatFails(t *testing.T) {
	program := filepath.Join(t.TempDir(), "hook")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nexit 7\n"), 0o700))
	s, addr := startAdmin(t, func(c *server.Config) { c.OnRole = program })
	require.Eventually(t, func() bool {
		_, text := fetch(t, addr, "/metrics")
		return strings.Contains(text, "\ngotycoon_role_command_failures_total 1\n")
	}, patience, time.Millisecond)
	status, _ := s.dial().get("/rpc/set?key=k&value=v")
	require.Equal(t, 200, status)
	require.Contains(t, strings.Join(s.log.lines(), "\n"), "the command of -on-role has failed")
	require.Zero(t, s.stop())
}
