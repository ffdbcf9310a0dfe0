package main

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/klog"
	"gotycoon/internal/version"
	"gotycoon/server"
)

func TestEveryOptionReachesTheConfiguration(t *testing.T) {
	o, err := parse(strings.Fields("-host localhost --port=2000 -tout 1.5 -th 4 -log l -ls -ulog u -ulim 2k -uasi 0.5 -sid 7 " +
		"-mhost h -mport 2001 -rts r -riv 0.3 -sync-replicas 2 -sync-timeout 1.5 -sync-degrade -ord -oat -oas -onl -otl -onr -as-is -checkpoint 1m -asi 10 -ash -dmn -pid p -cmd c -bgs s -bgsi 2.5 -bgsc lzo " +
		"-max-connections 5 -max-watches 12 -max-request 1m -max-inflight 2m -request-time 3 -answer-time 8 -idle 4 -memory 5m -max-size 6m -min-free 7m -compact-ratio 2.5 " +
		"-ulog-keep-age 1.5d -ulog-keep-size 50g -ulog-keep-count 9 -ulog-slave-time 36h -ulog-slave-size 1g a.kct -b"))
	require.NoError(t, err)
	require.Equal(t, server.Config{
		Host: "localhost", Port: 2000, Timeout: 1500 * time.Millisecond, Threads: 4,
		LogPath: "l", LogLevel: klog.LevelSystem,
		UpdateLog: "u", UpdateLogLimit: 2048, SyncInterval: 500 * time.Millisecond, ServerID: 7,
		Retention:  server.RetentionConfig{Age: 36 * time.Hour, Size: 50 << 30, Count: 9, SlaveTime: 36 * time.Hour, SlaveSize: 1 << 30},
		MasterHost: "h", MasterPort: 2001, RTSPath: "r", MasterInterval: 300 * time.Microsecond,
		Sync:     server.SyncConfig{Replicas: 2, Timeout: 1500 * time.Millisecond, Degrade: true},
		ReadOnly: true, SyncEach: true, TryLock: true, NoRepair: true, AsIs: true, CheckpointSize: 1 << 20, CompactRatio: 2.5,
		AutoSync: 10 * time.Second, AutoSyncHard: true,
		Snapshots: server.SnapshotConfig{Dir: "s", Interval: 2500 * time.Millisecond, Compressor: "lzo"},
		Limits: server.LimitsConfig{Conns: 5, Watches: 12, Request: 1 << 20, InFlight: 2 << 20, RequestTime: 3 * time.Second, AnswerTime: 8 * time.Second, Idle: 4 * time.Second,
			Memory: 5 << 20, MaxSize: 6 << 20, MinFree: 7 << 20},
		Daemon: true, PIDPath: "p", CmdDir: "c", Databases: []string{"a.kct", "-b"},
	}, o.Config)
}

func TestDefaults(t *testing.T) {
	o, err := parse(nil)
	require.NoError(t, err)
	require.Equal(t, server.DefaultConfig(), o.Config)
}

func TestSpellings(t *testing.T) {
	for _, row := range []struct {
		name  string
		args  []string
		check func(t *testing.T, o *options)
	}{
		{"the last log level counts", []string{"-lz", "-li"}, func(t *testing.T, o *options) {
			require.Equal(t, slog.LevelInfo, o.LogLevel)
		}},
		{"databases like options follow after two dashes", []string{"-ord", "--", "-", "-x"}, func(t *testing.T, o *options) {
			require.Equal(t, []string{"-", "-x"}, o.Databases)
		}},
		{"a single dash follows another database", []string{":", "-"}, func(t *testing.T, o *options) {
			require.Equal(t, []string{":", "-"}, o.Databases)
		}},
		{"no limit of a segment", []string{"-ulim", "0"}, func(t *testing.T, o *options) {
			require.Negative(t, o.UpdateLogLimit)
		}},
		{"negative values are values", []string{"-tout", "-1", "-sid", "-1"}, func(t *testing.T, o *options) {
			require.Equal(t, -time.Second, o.Timeout)
			require.Equal(t, server.NoServerID, o.ServerID)
		}},
		{"fractions with a unit", []string{"-checkpoint", "1.5K"}, func(t *testing.T, o *options) {
			require.EqualValues(t, 1536, o.CheckpointSize)
		}},
		{"a very long time", []string{"-tout", "1e9"}, func(t *testing.T, o *options) {
			require.Equal(t, time.Duration(1e18), o.Timeout)
		}},
		{"longer than a clock can tell", []string{"-tout", "1e12"}, func(t *testing.T, o *options) {
			require.Greater(t, o.Timeout, time.Duration(math.MaxInt64/4))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			o, err := parse(row.args)
			require.NoError(t, err)
			row.check(t, o)
		})
	}
}

func TestRefusedCommandLines(t *testing.T) {
	for args, want := range map[string]string{
		"-nosuch":                  "there is no option -nosuch\nusage:",
		"-prot 7":                  "there is no option -prot; did you mean -port?",
		"a.kct -port 7":            "-port stands behind a database: options come first",
		"-port":                    "port",
		"-port 0":                  "-port: must be at least 1",
		"-port x":                  "must be a number",
		"-th 0":                    "-th: must be at least 1",
		"-mport 0":                 "-mport: must be at least 1",
		"-":                        "the database \"-\" must come after",
		"-pldb x.so":               "-pldb: needs the name of a database",
		"-mhost localhost":         "replication requires the server ID",
		"-mhost localhost -sid 1":  "replication requires the replication time stamp file",
		"-bgs no/dir":              "no/dir: could not open the directory",
		"-bgs options.go":          "options.go: could not open the directory",
		"-scr nofile.lua":          "nofile.lua: no such file",
		"-plsv a -memcache-port 9": "-memcache-port cannot be used together with -plsv",
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 1, run(strings.Fields(args), &stdout, &stderr), args)
		require.Contains(t, stderr.String(), want)
		require.True(t, strings.HasPrefix(stderr.String(), "ktserver: "), stderr.String())
		require.Empty(t, stdout.String())
	}
}

func TestErrorsOfTheConfigurationComeFromTheServer(t *testing.T) {
	require.Equal(t, "ktserver: update log requires the server ID\n", refused(t, "-ulog", "u"))
	require.Contains(t, refused(t, "-ulog-keep-count", "3"), "they need -ulog\n")
	require.Contains(t, refused(t, "-ulog-keep-age", "-1"), "cannot be negative\n")
	require.Equal(t, "ktserver: -idle cannot be negative\n", refused(t, "-idle", "-1"))
	require.Equal(t, "ktserver: -slow cannot be negative\n", refused(t, "-slow", "-1"))
	require.Equal(t, "ktserver: /nonexistent: no such directory\n", refused(t, "-cmd", "/nonexistent"))
	require.Equal(t, "ktserver: rel.log: a daemon can accept absolute path only\n", refused(t, "-dmn", "-log", "rel.log"))
}

func TestVersionAndHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Zero(t, run([]string{"--version"}, &stdout, &stderr))
	require.Equal(t, "Kyoto Tycoon 0.9.56b (2.19) on Linux (Kyoto Cabinet 1.2.76a)\n"+version.Current().String()+"\n", stdout.String())
	stdout.Reset()
	require.Zero(t, run([]string{"--help"}, &stdout, &stderr))
	for _, option := range []string{"-port number", "-ulog directory", "-mhost address", "-checkpoint size", "-dmn"} {
		require.Contains(t, stdout.String(), option)
	}
	require.NotContains(t, stdout.String(), "--bgs")
	for word, want := range map[string]string{"version": version.Current().String(), "help": stdout.String()} {
		var said bytes.Buffer
		require.Zero(t, run([]string{word}, &said, &stderr)) // no database can have the name
		require.Contains(t, said.String(), want)
	}
	require.Empty(t, stderr.String())
}

func TestAdminOptions(t *testing.T) {
	o, err := parse(strings.Fields("-admin localhost:1990 -ready-lag 2.5 -slow 10ms -sample 100"))
	require.NoError(t, err)
	require.Equal(t, server.AdminConfig{
		Addr: "localhost:1990", ReadyLag: 2500 * time.Millisecond, Slow: 10 * time.Millisecond, Sample: 100,
	}, o.Admin)
}

// TestSpans: seconds as of -tout, or a unit.
func TestSpans(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "1": time.Second, "0.25": 250 * time.Millisecond, "10ms": 10 * time.Millisecond, "1m30s": 90 * time.Second, "5m": 5 * time.Minute,
		"7d": 168 * time.Hour, "0.5d": 12 * time.Hour, "-1d": -24 * time.Hour,
	} {
		var got time.Duration
		require.NoError(t, span{&got}.Set(text), text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "x", "10 parsecs", "d", "xd", "NaNd", "1e99d", "infd"} {
		var got time.Duration
		require.ErrorIs(t, span{&got}.Set(text), errSpan, text)
	}
}
