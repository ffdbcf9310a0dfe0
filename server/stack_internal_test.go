package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/internal/freeport"
	"gotycoon/internal/tlsfiles/testca"
)

// A part that cannot be closed keeps none of the others open.
func TestAStackClosesAllPartsInReverseOrder(t *testing.T) {
	var closed, heard []string
	s := stack{closed: func(name string) { heard = append(heard, name) }}
	for _, name := range []string{"a", "b", "c"} {
		s.push(part{name, nil, func() bool { closed = append(closed, name); return name != "b" }})
	}
	s.push(part{"d", nil, nil})
	require.False(t, s.unwind())
	require.Equal(t, []string{"c", "b", "a"}, closed)
	require.Equal(t, []string{"d", "c", "b", "a"}, heard)
	require.True(t, s.unwind(), "nothing is closed twice")
	require.Len(t, closed, 3)
}

// everything is the configuration of a server that has all parts.
func everything(t *testing.T) Config {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(in("s.lua"), []byte("function f() end\n"), 0o600))
	ca, err := testca.New(dir, "ca")
	require.NoError(t, err)
	_, err = ca.Issue(testca.Spec{Name: "server", Hosts: []string{"127.0.0.1"}})
	require.NoError(t, err)
	first := freeport.TakeRow(t, 6)
	c := DefaultConfig()
	c.Host, c.Port = "127.0.0.1", 0
	c.Databases = []string{in("a.kct"), ":"}
	c.UpdateLog, c.ServerID = in("ulog"), 1
	c.RTSPath, c.PIDPath = in("a.rts"), in("a.pid")
	c.Snapshots.Dir = in("bgs")
	c.Script.Path = in("s.lua")
	c.TLS.Cert, c.TLS.Key = ca.Path("server.pem"), ca.Path("server.key")
	c.TLS.PlainPort = first
	c.Plugins.MemcachePort = first + 1
	c.Services = ServicesConfig{
		CounterPort: first + 2, CounterBuckets: 1000, LockPort: first + 3, SequencePort: first + 4, QuotaPort: first + 5, Database: in("services.kct"),
	}
	c.Admin.Addr = "127.0.0.1:0"
	return c
}

// life runs a server to its end, and returns its exit code, its log, and the parts in the order in
// which they were opened and closed. failing is the part whose opening fails; "": none.
func life(t *testing.T, ctx context.Context, c Config, failing string) (code int, log string, opened, closed []string) {
	t.Helper()
	before, memory := goleak.IgnoreCurrent(), debug.SetMemoryLimit(-1)
	opened, closed = []string{}, []string{}
	c.opening = func(part string) error {
		if part == failing {
			return errors.New("this part does not open")
		}
		opened = append(opened, part)
		return nil
	}
	c.closed = func(part string) { closed = append(closed, part) }
	var text bytes.Buffer
	code = Run(ctx, c, &text, io.Discard)
	require.NoError(t, goleak.Find(before), failing)
	require.NoFileExists(t, c.PIDPath, failing)
	require.Equal(t, memory, debug.SetMemoryLimit(-1), failing)
	return code, text.String(), opened, closed
}

// once ends a server as soon as it listens.
func once(t *testing.T, c *Config) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c.Listening = func(net.Addr) {
		_, err := os.Stat(c.PIDPath)
		require.NoError(t, err)
		cancel()
	}
	return ctx
}

func reversed(names []string) []string {
	names = slices.Clone(names)
	slices.Reverse(names)
	return names
}

// Wherever the start fails, what was opened before is closed in reverse order: the next start in
// the same directory and on the same ports finds nothing locked and nothing taken.
func TestEachPartThatDoesNotOpenUnwindsTheOthers(t *testing.T) {
	c := everything(t)
	code, log, all, closed := life(t, once(t, &c), c, "")
	require.Zero(t, code, log)
	require.Equal(t, reversed(all), closed)
	require.Contains(t, log, "[FINISH]")
	require.Greater(t, len(all), 15)
	for i, name := range all {
		code, log, opened, closed := life(t, t.Context(), c, name)
		require.Equal(t, 1, code, name)
		require.Equal(t, all[:i], opened, name)
		require.Equal(t, reversed(all[:i]), closed, name)
		require.Contains(t, log, "[ERROR]: this part does not open\n", name)
		require.NotContains(t, log, "[FINISH]", name)
		require.Equal(t, 1, strings.Count(log, "[ERROR]"), log)
	}
	code, log, _, closed = life(t, once(t, &c), c, "")
	require.Zero(t, code, log)
	require.Equal(t, reversed(all), closed)
}

// The same with configurations of which each part fails by itself.
func TestPartsThatFailUnwindTheOthers(t *testing.T) {
	port := freeport.Take(t)
	busy, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
	require.NoError(t, err)
	defer busy.Close()
	for _, row := range []struct {
		part, says string // the last part that has been begun, and its error
		change     func(*Config)
	}{
		{"host", "unknown host", func(c *Config) { c.Host = "no.such.host.invalid" }},
		{"access", "no such file", func(c *Config) { c.Access.Path = filepath.Join(filepath.Dir(c.PIDPath), "missing") }},
		{"admin listener", "-admin", func(c *Config) { c.Admin.Addr = busy.Addr().String() }},
		{"databases", "could not apply a snapshot", func(c *Config) { c.Databases[0] += "/x.kct" }},
		{"databases", "could not open a database file: foo.xyz", func(c *Config) { c.Databases[1] = "foo.xyz" }},
		{"memcached", "could not load a plug-in server file", func(c *Config) { c.Plugins = PluginConfig{Server: "no.so"} }},
		{"services", "starting the quota server", func(c *Config) { c.Services.QuotaPort = port }},
		{"work in the background", "msg=bind failed", func(c *Config) { c.TLS.PlainPort = port }},
		{"work in the background", "msg=bind failed", func(c *Config) { c.Plugins.MemcachePort = port }},
	} {
		c := everything(t)
		code, log, _, _ := life(t, once(t, &c), c, "")
		require.Zero(t, code, log)
		broken := c
		broken.Databases = slices.Clone(c.Databases)
		row.change(&broken)
		code, log, opened, closed := life(t, t.Context(), broken, "")
		require.Equal(t, 1, code, row.says)
		require.Contains(t, log, row.says)
		require.Equal(t, row.part, opened[len(opened)-1], log)
		if row.part != "work in the background" { // the last part: the server has served, or tried
			opened = opened[:len(opened)-1]
		}
		require.Equal(t, reversed(opened), closed, row.says)
		code, log, _, _ = life(t, once(t, &c), c, "")
		require.Zero(t, code, "%s: %s", row.says, log)
	}
}
