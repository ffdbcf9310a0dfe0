package server_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/server"
	"gotycoon/snapshot"
	"gotycoon/ulog"
)

// keeping is a server with an update log of many files, of which few are kept.
func keeping(dir string, count int, dbs ...string) func(*server.Config) {
	return func(c *server.Config) {
		c.UpdateLog, c.ServerID, c.UpdateLogLimit = filepath.Join(dir, "ulog"), 1, 1
		c.Databases = dbs
		c.Retention.Count = count
	}
}

func logFiles(t *testing.T, dir string) int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "ulog", "*.ulog"))
	require.NoError(t, err)
	return len(names)
}

// Files beyond the limit are removed by themselves, but for those that a hold of an operator, which
// outlasts the server, needs. ulog_remove heeds the hold too.
func TestTheLogIsRemovedByItself(t *testing.T) {
	dir := t.TempDir()
	s := start(t, keeping(dir, 3, filepath.Join(dir, "a.kct")))
	c := s.dial()
	for i := range 10 {
		c.set(0, "k"+strconv.Itoa(i), "v")
	}
	eventually(t, func() bool { return logFiles(t, dir) == 3 })
	require.Equal(t, "3", c.rows("/rpc/report")["ulog_files"])
	require.NotEqual(t, "0", c.rows("/rpc/report")["ulog_removed"])
	require.Equal(t, "0", c.rows("/rpc/report")["ulog_overdue_bytes"])
	require.Equal(t, "0", c.rows("/rpc/ulog_hold?name=nightly&ttl=1000")["gap"])
	for i := range 10 {
		c.set(0, "l"+strconv.Itoa(i), "v")
	}
	eventually(t, func() bool { return c.rows("/rpc/report")["ulog_overdue_bytes"] != "0" })
	require.NotEqual(t, "0", c.rows("/rpc/report")["ulog_held_hold"])
	held := logFiles(t, dir)
	require.GreaterOrEqual(t, held, 10)
	status, body := c.get("/rpc/ulog_remove")
	require.Equal(t, 200, status, body)
	require.Equal(t, held, logFiles(t, dir))
	require.Contains(t, c.rows("/rpc/ulog_holds")["1"], "kind=hold ")
	require.Contains(t, c.rows("/rpc/ulog_holds")["1"], " name=nightly what=the hold nightly")
	require.Contains(t, strings.Join(s.log.lines(), "\n"), "are beyond the limits and are kept, because they are needed for the hold nightly")
	require.Zero(t, s.stop())

	s = start(t, keeping(dir, 3, filepath.Join(dir, "a.kct")))
	c = s.dial()
	status, body = c.get("/rpc/ulog_remove")
	require.Equal(t, 200, status, body)
	require.GreaterOrEqual(t, logFiles(t, dir), 10)
	status, body = c.get("/rpc/ulog_release?name=nightly")
	require.Equal(t, 200, status, body)
	status, _ = c.get("/rpc/ulog_release?name=nightly")
	require.Equal(t, 450, status)
	eventually(t, func() bool { return logFiles(t, dir) <= 3 })
	require.Equal(t, "v", c.value(0, "k0"))
	from := c.rows("/rpc/ulog_hold?name=late&ts=1")["ts"]
	require.Equal(t, "1", from)
	require.Equal(t, "1", c.rows("/rpc/ulog_hold?name=late&ts=1")["gap"], "what is newer is gone")
}

// Without a limit nothing is removed, and nobody hears of holds in report.
func TestWithoutALimitNothingIsRemoved(t *testing.T) {
	dir := t.TempDir()
	s := start(t, keeping(dir, 0, ":"))
	c := s.dial()
	for i := range 10 {
		c.set(0, "k"+strconv.Itoa(i), "v")
	}
	files := logFiles(t, dir)
	require.Equal(t, 11, files)
	<-time.After(1500 * time.Millisecond) // longer than between two looks
	require.Equal(t, files, logFiles(t, dir))
	status, body := c.get("/rpc/report")
	require.Equal(t, 200, status)
	require.NotContains(t, body, "ulog_")
	_, err := os.Stat(filepath.Join(dir, "ulog", "gotycoon.holds"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Names, stamps and times of holds that make no sense are refused, and keep nothing.
func TestWrongHoldsAreRefused(t *testing.T) {
	dir := t.TempDir()
	c := start(t, keeping(dir, 1, ":")).dial()
	for _, query := range []string{
		"", "name=", "name=a%20b", "name=" + strings.Repeat("x", 65), "name=..%2Fa", "name=a&ttl=0", "name=a&ttl=-1", "name=a&ttl=31622401",
		"name=a&ttl=18446744073709551617", "name=a&ttl=9223372036854775807", "name=a&ttl=1e3", "name=a&ttl=", "name=a&ts=", "name=a&ts=-1", "name=a&ts=x",
		"name=a&ts=99999999999999999999",
	} {
		status, body := c.get("/rpc/ulog_hold?" + query)
		require.Equal(t, 400, status, "%s: %s", query, body)
	}
	status, _ := c.get("/rpc/ulog_release")
	require.Equal(t, 400, status)
	require.NotContains(t, c.rows("/rpc/ulog_holds")["1"], "kind=hold")
	status, _ = start(t, nil).dial().get("/rpc/ulog_hold?name=a")
	require.Equal(t, 400, status, "there is no log")
}

// A database in memory keeps the log from the snapshot before its newest one. When the newest is
// found damaged, the start goes on from the one before, and nothing is missing.
func TestADamagedSnapshotIsNoLossWhereTheLogIsRemoved(t *testing.T) {
	for _, damage := range []string{"cut off", "no header", "fewer records"} {
		t.Run(damage, func(t *testing.T) {
			dir := home(t)
			config := func(of string) func(*server.Config) {
				return func(c *server.Config) {
					withSnapshots(of, true, ":", "%")(c)
					keeping(of, 1, ":", "%")(c)
					c.Snapshots.Interval = 300 * time.Millisecond
				}
			}
			s := start(t, config(dir))
			c := s.dial()
			path := filepath.Join(dir, "bgs", snapshot.Name(0))
			for i := range 10 {
				c.set(i%2, "k"+strconv.Itoa(i), "v")
				c.set(0, "changed", strconv.Itoa(i))
			}
			c.set(0, "gone", "v")
			eventually(t, func() bool {
				newest, former := stampOf(path), stampOf(path+".former")
				return former > 0 && former < newest && logFiles(t, dir) < 10
			})
			status, body := c.get("/rpc/remove?DB=0&key=gone")
			require.Equal(t, 200, status, body)
			c.set(0, "last", "v")
			require.Zero(t, s.stop())
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			switch damage {
			case "cut off":
				text = text[:len(text)-3]
			case "no header":
				text = text[:5]
			case "fewer records":
				text = shorter(t, path)
			}
			require.NoError(t, os.WriteFile(path, text, 0o600))
			after := crashed(t, dir)
			s = start(t, config(after))
			c = s.dial()
			require.Contains(t, strings.Join(s.log.lines(), "\n"), "a snapshot is damaged: database 0 goes on from the snapshot before")
			for i := range 10 {
				require.Equal(t, "v", c.value(i%2, "k"+strconv.Itoa(i)))
			}
			require.Equal(t, "9", c.value(0, "changed"))
			require.Equal(t, "v", c.value(0, "last"))
			require.Empty(t, c.value(0, "gone"))
			require.FileExists(t, filepath.Join(after, "bgs", snapshot.Name(0)+".damaged"))
			c.set(0, "later", "v")
			c = start(t, config(crashed(t, after))).dial()
			require.Equal(t, "v", c.value(0, "later"))
			require.Equal(t, "v", c.value(0, "last"))

			if damage == "fewer records" {
				return // which stops no start
			}
			require.NoError(t, os.Remove(path+".former"))
			require.Contains(t, refused(t, config(dir)), "could not apply a snapshot")
		})
	}
}

// stampOf returns the instant of a snapshot, 0 where there is none.
func stampOf(path string) ulog.Stamp {
	in, err := snapshot.Open(vfs.OS{}, path)
	if err != nil {
		return 0
	}
	defer in.Close()
	return in.Header().Stamp
}

// shorter is a sound snapshot with fewer records than its header says.
func shorter(t *testing.T, path string) []byte {
	t.Helper()
	in, err := snapshot.Open(vfs.OS{}, path)
	require.NoError(t, err)
	defer in.Close()
	var b strings.Builder
	w, err := snapshot.NewWriter(&b, in.Header())
	require.NoError(t, err)
	key, value, err := in.Next()
	require.NoError(t, err)
	require.NoError(t, w.Add(key, value))
	require.NoError(t, w.Close())
	return []byte(b.String())
}

// When the disk is full, the log and the probes say who keeps the update log.
func TestAFullDiskTellsWhoKeepsTheLog(t *testing.T) {
	dir := smallDisk(t, 64)
	s, addr := startAdmin(t, func(c *server.Config) {
		keeping(dir, 1, ":")(c)
		c.UpdateLogLimit = 1 << 20
	})
	c := s.dial()
	require.NotEmpty(t, c.rows("/rpc/ulog_hold?name=archive")["ts"])
	value := make([]byte, 400_000)
	eventually(t, func() bool { status, _ := c.put("k", value); return status == 507 })
	eventually(t, func() bool { return s.says("the update log keeps files for the hold archive (") })
	eventually(t, func() bool {
		_, text := fetch(t, addr, "/metrics")
		return regexp.MustCompile(`(?m)^gotycoon_log_overdue_bytes\{log="[^"]*"\} [1-9]`).MatchString(text)
	})
	_, text := fetch(t, addr, "/metrics")
	require.Regexp(t, `(?m)^gotycoon_log_kept_bytes\{kind="hold",log="[^"]*"\} [1-9]`, text)
	require.Regexp(t, `(?m)^gotycoon_log_held_bytes\{holder="the hold archive",log="[^"]*"\} [1-9]`, text)
	require.Regexp(t, `(?m)^gotycoon_log_oldest_timestamp_seconds\{log="[^"]*"\} [1-9]`, text)
	require.Regexp(t, `(?m)^gotycoon_log_removed_segments_total\{log="[^"]*"\} \d`, text)
	keeper := regexp.MustCompile(`; the update log keeps files for the hold archive \(\d+ MiB\)`)
	eventually(t, func() bool {
		c.put("k", value) // refused again where there was room meanwhile
		_, text = fetch(t, addr, "/readyz")
		return keeper.MatchString(text)
	})
	status, body := c.get("/rpc/ulog_release?name=archive")
	require.Equal(t, 200, status, body)
	require.Eventually(t, func() bool { status, _ = c.put("k", []byte("2")); return status < 300 }, patience, 10*time.Millisecond)
	eventually(t, func() bool { return logFiles(t, dir) <= 2 })
}
