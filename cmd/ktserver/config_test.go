package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// withFile parses a command line whose first option is -config with a file of this text.
func withFile(t *testing.T, text string, args ...string) (*options, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server.conf")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return parse(append([]string{"-config", path}, args...))
}

func TestConfigFileHasOptionsByTheirNames(t *testing.T) {
	o, err := withFile(t, "# all kinds\nport = 2000\nulog=\"my log\"\nsid = 3\nulim = 1m\noas = true\nuasi = 0.5\nle = true\n"+
		"database = a.kct\ndatabase = b.kct#ktopts=p\n")
	require.NoError(t, err)
	require.Equal(t, 2000, o.Port)
	require.Equal(t, "my log", o.UpdateLog)
	require.Equal(t, 3, o.ServerID)
	require.Equal(t, int64(1<<20), o.UpdateLogLimit)
	require.True(t, o.SyncEach)
	require.Equal(t, 500*time.Millisecond, o.SyncInterval)
	require.Equal(t, []string{"a.kct", "b.kct#ktopts=p"}, o.Databases)
}

func TestTheCommandLineCountsMoreThanTheFile(t *testing.T) {
	o, err := withFile(t, "port = 2000\nth = 3\ndatabase = a.kct\ncounter.enable = false\ncounter.port = 5\n",
		"-port", "2001", "-counter-port", "6", "b.kct")
	require.NoError(t, err)
	require.Equal(t, 2001, o.Port)
	require.Equal(t, 3, o.Threads)
	require.Equal(t, 6, o.Services.CounterPort)
	require.Equal(t, []string{"b.kct"}, o.Databases)
}

func TestKeysOfTheCounterDocument(t *testing.T) {
	for text, port := range map[string]int{
		"counter.enable = true\n":                            11215,
		"counter.enable = true\ncounter.port = 7\n":          7,
		"counter.enable = true\ncounter.port = 7 # text\n":   7,
		"counter.port = 7\ncounter.enable = true\n":          7,
		"counter.port = 7\n":                                 0, // off by default
		"counter.enable = false\ncounter.port = 7\n":         0,
		"counter-port = 7\n":                                 7,
		"counter.enable = true\ncounter.enable = false\n":    0,
		"counter.max_connections = 1\ncounter.buckets = 2\n": 0,
	} {
		o, err := withFile(t, text)
		require.NoError(t, err, text)
		require.Equal(t, port, o.Services.CounterPort, text)
	}
	for _, key := range []string{"counter.stats_interval", "counter.stat_interval"} {
		o, err := withFile(t, "counter.enable = true\ncounter.max_connections = 9\ncounter.buckets = 8\n"+key+" = 10\n")
		require.NoError(t, err)
		require.Equal(t, 9, o.Services.CounterConns)
		require.Equal(t, 8, o.Services.CounterBuckets)
		require.Equal(t, 10*time.Second, o.Services.CounterInterval)
	}
}

func TestErrorsOfConfigFilesNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"port = 1\nlog.threshold = info\n": `server.conf:2: there is no option "log.threshold"`,
		"port = x\n":                       "server.conf:1: port: ",
		"\nhello\n":                        "server.conf:2: expected '=' after key",
		"counter.enable = yes\n":           `server.conf:1: counter.enable is true or false, not "yes"`,
		"config = other\n":                 "there is no option",
		"ord = maybe\n":                    "server.conf:1: ord: ",
	} {
		_, err := withFile(t, text)
		require.ErrorContains(t, err, want, text)
	}
	_, err := parse([]string{"-config", filepath.Join(t.TempDir(), "none")})
	require.ErrorContains(t, err, "no such file")
}
