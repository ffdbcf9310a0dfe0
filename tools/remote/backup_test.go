package remote_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/db/rebuild"
	"gotycoon/db/record"
	"gotycoon/internal/klog"
	"gotycoon/internal/vfs"
	"gotycoon/server"
	"gotycoon/snapshot"
	"gotycoon/tools/remote"
	"gotycoon/ulog"
)

// startServer runs a server of databases with an update log until the test ends, and returns its
// port.
func startServer(t *testing.T, log string, databases ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	listening := make(chan net.Addr, 1)
	cfg := server.DefaultConfig()
	cfg.Databases, cfg.UpdateLog, cfg.ServerID = databases, log, 1
	cfg.Listening = func(a net.Addr) { listening <- a }
	cfg.Port, cfg.LogLevel = 0, klog.LevelSilent
	ended := make(chan int, 1)
	go func() { ended <- server.Run(ctx, cfg, io.Discard, io.Discard) }()
	t.Cleanup(func() { cancel(); <-ended })
	_, port, err := net.SplitHostPort((<-listening).String())
	require.NoError(t, err)
	return port
}

// description reads what backup prints.
func description(t *testing.T, out string) map[string]string {
	t.Helper()
	require.Regexp(t, regexp.MustCompile(`\Ats: \d+\ntime: .*Z\ncount: \d+\nsize: \d+\nsha256: [0-9a-f]{64}\n\z`), out)
	got := map[string]string{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		got[name] = value
	}
	return got
}

// requireDescribed compares the description of a backup with the file, and the checksum beside it.
func requireDescribed(t *testing.T, path string, said map[string]string) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	require.Equal(t, hex.EncodeToString(sum[:]), said["sha256"])
	require.Equal(t, strconv.Itoa(len(content)), said["size"])
	beside, err := os.ReadFile(path + ".sha256")
	require.NoError(t, err)
	require.Equal(t, said["sha256"]+"  "+filepath.Base(path)+"\n", string(beside))
	for _, left := range []string{"*.tmp", "*.rebuild-*"} {
		names, err := filepath.Glob(filepath.Join(filepath.Dir(path), left))
		require.NoError(t, err)
		require.Empty(t, names)
	}
}

// readSnapshot returns header and records of a snapshot.
func readSnapshot(t *testing.T, content []byte) (snapshot.Header, map[string]string) {
	t.Helper()
	r, err := snapshot.NewReader(bytes.NewReader(content))
	require.NoError(t, err)
	got := map[string]string{}
	for {
		key, value, err := r.Next()
		if err == io.EOF {
			return r.Header(), got
		}
		require.NoError(t, err)
		got[string(key)] = string(value)
	}
}

// readFile returns description and records of a database file.
func readFile(t *testing.T, path string) (filestore.Meta, map[string]string) {
	t.Helper()
	f, err := rebuild.Open(path, false, true)
	require.NoError(t, err)
	defer f.Close()
	m := f.Meta()
	require.NoError(t, f.Close())
	c, err := db.Open([]string{path}, db.Options{ReadOnly: true})
	require.NoError(t, err)
	defer c.Close()
	got := map[string]string{}
	frozen, err := c.DB(0).Freeze()
	require.NoError(t, err)
	require.NoError(t, frozen.Scan(func(key, value []byte) error { got[string(key)] = string(value); return nil }))
	require.NoError(t, frozen.Close())
	return m, got
}

// backUp runs backup and returns what it says.
func backUp(t *testing.T, port string, args ...string) map[string]string {
	t.Helper()
	r := command(t, "", append([]string{"backup", "-port", port}, args...)...)
	require.Zero(t, r.exit, r.stderr)
	require.Empty(t, r.stderr)
	return description(t, r.stdout)
}

// TestBackup makes backups while clients write. Each backup must have the records that the log
// makes up to the backup's stamp.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	logs := filepath.Join(dir, "ulog")
	port := startServer(t, logs, ":", "%", filepath.Join(dir, "f.kct"), filepath.Join(dir, "h.kch"), "%#rcomp=lexdesc")
	c := client.New("127.0.0.1:"+port, client.Options{})
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan struct{})
	began := make(chan struct{})
	go func() {
		defer close(written)
		for i := 0; ctx.Err() == nil; i++ {
			for n := range 5 {
				d := c.DB(strconv.Itoa(n))
				key := fmt.Sprint(i * 7 % 3000)
				if i%5 == 4 {
					_ = d.Remove(ctx, key) // may not be there
				} else if err := d.Set(ctx, key, fmt.Append(nil, "value ", i), client.Never); err != nil && ctx.Err() == nil {
					t.Errorf("set: %v", err)
					return
				}
			}
			if i == 2000 {
				close(began)
			}
		}
	}()
	<-began
	type one struct {
		db   int
		path string
		said map[string]string
	}
	var all []one
	for n := range 5 {
		for _, ext := range []string{"ktss", "kct", "kch"} {
			path := filepath.Join(dir, fmt.Sprintf("backup %d.%s", n, ext))
			said := backUp(t, port, "-db", strconv.Itoa(n), path)
			all = append(all, one{n, path, said})
		}
	}
	cancel()
	<-written
	id, err := ulog.Identity(vfs.OS{}, logs)
	require.NoError(t, err)
	for _, b := range all {
		requireDescribed(t, b.path, b.said)
		stamp, err := strconv.ParseUint(b.said["ts"], 10, 64)
		require.NoError(t, err)
		at, err := time.Parse(time.RFC3339Nano, b.said["time"])
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), at, time.Minute)
		want := replayLog(t, logs, b.db, ulog.Stamp(stamp))
		require.NotEmpty(t, want)
		require.Equal(t, strconv.Itoa(len(want)), b.said["count"])
		if filepath.Ext(b.path) == ".ktss" {
			content, err := os.ReadFile(b.path)
			require.NoError(t, err)
			h, got := readSnapshot(t, content)
			require.Equal(t, want, got)
			require.EqualValues(t, stamp, h.Stamp)
			require.EqualValues(t, len(want), h.Count)
			continue
		}
		m, got := readFile(t, b.path)
		require.Equal(t, want, got)
		require.True(t, m.Copied())
		require.Equal(t, filestore.ID(id), m.LogID)
		require.EqualValues(t, stamp, m.Stamp)
		require.EqualValues(t, b.db, m.DBID)
	}
}

// replayLog returns what a log makes of a database up to a stamp.
func replayLog(t *testing.T, dir string, dbid int, upTo ulog.Stamp) map[string]string {
	t.Helper()
	got := map[string]string{}
	r, err := ulog.OpenReader(vfs.OS{}, dir, 0, ulog.ReaderOptions{})
	require.NoError(t, err)
	defer r.Close()
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) || err == nil && e.Stamp > upTo {
			return got
		}
		require.NoError(t, err)
		u, err := ulog.ParseMessage(e.Message)
		require.NoError(t, err)
		switch {
		case int(u.DBID) != dbid:
		case u.Op == ulog.OpSet:
			got[string(u.Key)] = string(u.Value)
		case u.Op == ulog.OpRemove:
			delete(got, string(u.Key))
		}
	}
}

// TestBackupIsOpenedAsItIs gives a backup to a server with the same log. The server must not bring
// in later updates unasked, neither at its first start nor at its second.
func TestBackupIsOpenedAsItIs(t *testing.T) {
	dir := t.TempDir()
	logs, file, copied := filepath.Join(dir, "ulog"), filepath.Join(dir, "f.kct"), filepath.Join(dir, "copy.kct")
	c, err := db.Open([]string{file}, db.Options{LogDir: logs})
	require.NoError(t, err)
	require.NoError(t, c.DB(0).Set(nil, []byte("before"), nil, record.Never))
	require.NoError(t, c.Close())
	t.Run("backup", func(t *testing.T) {
		port := startServer(t, logs, file)
		backUp(t, port, copied)
		r := command(t, "", "set", "-port", port, "after", "x")
		require.Zero(t, r.exit, r.stderr)
	})
	for range 2 {
		c, err = db.Open([]string{copied}, db.Options{LogDir: logs})
		require.NoError(t, err)
		_, _, err = c.DB(0).Get(nil, nil, []byte("before"))
		require.NoError(t, err)
		_, _, err = c.DB(0).Get(nil, nil, []byte("after"))
		require.ErrorIs(t, err, dberr.ErrNoRecord)
		require.NoError(t, c.DB(0).Set(nil, []byte("kept"), nil, record.Never))
		require.NoError(t, c.Close())
	}
	_, got := readFile(t, copied)
	require.Len(t, got, 2)
}

func TestBackupToStandardOutput(t *testing.T) {
	clear(t)
	succeed(t, "", "set", "-db", "tree", "k", "v")
	for _, compress := range []string{"none", "zlib", "zstd", "s2"} {
		r := command(t, "", at("backup", "-db", "tree", "-compress", compress, "-")...)
		require.Zero(t, r.exit, r.stderr)
		said := description(t, r.stderr)
		sum := sha256.Sum256([]byte(r.stdout))
		require.Equal(t, hex.EncodeToString(sum[:]), said["sha256"])
		h, got := readSnapshot(t, []byte(r.stdout))
		require.Equal(t, map[string]string{"k": "\xff\xff\xff\xff\xffv"}, got)
		require.Equal(t, compress, h.Compressor.String())
	}
}

// TestBackupIsPaced receives with a limit.
func TestBackupIsPaced(t *testing.T) {
	clear(t)
	for i := range 4 {
		succeed(t, "", "set", "-db", "tree", fmt.Sprint(i), strings.Repeat("v", 25<<10))
	}
	begin := time.Now()
	backUp(t, port, "-db", "tree", "--limit", "64k", filepath.Join(t.TempDir(), "paced.ktss"))
	require.Greater(t, time.Since(begin), time.Second, "100 KiB at 64 KiB a second")
}

func TestBackupRefuses(t *testing.T) {
	clear(t)
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.kct")
	require.NoError(t, os.WriteFile(garbage, bytes.Repeat([]byte("no database"), 10_000), 0o600))
	used := filepath.Join(dir, "used.kct")
	busy := startServer(t, "", used)
	dec := startServer(t, "", "%#rcomp=dec")
	for _, c := range []struct{ args, want string }{
		{"", "an argument is missing"},
		{"x.txt", "must end in .ktss"},
		{"-limit 1k x.ktss", "at least 64k"},
		{"-compress what x.ktss", "must be none, zlib"},
		{"-compress zstd x.kct", "not compressed"},
		{"-db no.kct " + filepath.Join(dir, "x.ktss"), "there is no database no.kct"},
		{filepath.Join(dir, "no", "x.ktss"), "no such file"},
		{filepath.Join(dir, "no", "x.kct"), "no such file"},
		{garbage, "not a meta page of a database file"},
		{"-port " + busy + " " + used, "in use"},
		{"-port " + dec + " " + filepath.Join(dir, "d.kct"), "only be backed up to a snapshot"},
	} {
		r := command(t, "", at("backup", strings.Fields(c.args)...)...)
		require.Equal(t, 1, r.exit, c.args)
		require.Contains(t, r.stderr, c.want, c.args)
		require.Empty(t, r.stdout)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{garbage, used, used + ".wal"}, left)
}

// relay stands between client and server: it lets through what change makes of what the server
// sends, and closes the connection when change says so.
func relay(t *testing.T, change func(sent int, p []byte) (out []byte, more bool)) string {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			relayOne(in, change)
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	_, port, err := net.SplitHostPort(ln.Addr().String())
	require.NoError(t, err)
	return port
}

func relayOne(in net.Conn, change func(int, []byte) ([]byte, bool)) {
	defer in.Close()
	out, err := net.Dial("tcp4", "127.0.0.1:"+port)
	if err != nil {
		return
	}
	asked := make(chan struct{})
	go func() { defer close(asked); _, _ = io.Copy(out, in); out.Close() }()
	p, sent := make([]byte, 10_000), 0
	for {
		n, err := out.Read(p)
		if err != nil {
			break
		}
		if bytes.HasPrefix(p[:n], []byte("HTTP/1.1 200")) { // the question before the copy
			_, _ = in.Write(p[:n])
			continue
		}
		b, more := change(sent, p[:n])
		if _, err := in.Write(b); err != nil || !more {
			break
		}
		sent += n
	}
	in.Close()
	out.Close()
	<-asked
}

// TestBackupThatBreaksOff cuts, damages and shortens what the server sends. What stood under the
// name must be there as before, and nothing beside it.
func TestBackupThatBreaksOff(t *testing.T) {
	clear(t)
	for i := range 40 {
		succeed(t, "", "set", "-db", "tree", fmt.Sprint(i), strings.Repeat("v", 25<<10))
	}
	for _, ext := range []string{".ktss", ".kct"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "backup"+ext)
		said := backUp(t, port, "-db", "tree", path)
		for _, c := range []struct {
			name, want string
			change     func(sent int, p []byte) ([]byte, bool)
		}{
			{"cut in the middle", "EOF", func(sent int, p []byte) ([]byte, bool) { return p, sent < 500_000 }},
			{"cut in the header", "EOF", func(_ int, p []byte) ([]byte, bool) { return p[:20], false }},
			{"a bit is wrong", "checksum", func(sent int, p []byte) ([]byte, bool) {
				if sent < 500_000 && sent+len(p) >= 500_000 {
					p[len(p)/2] ^= 4
				}
				return p, true
			}},
			{"another server", "does not know the copy request", func(int, []byte) ([]byte, bool) { return nil, false }},
			{"the original", "does not know the copy request", func(int, []byte) ([]byte, bool) { return []byte{0xbf}, false }},
			{"fails within", "the disk is on fire", func(sent int, p []byte) ([]byte, bool) {
				return append(p[:47:47], "\xbf\x00\x00\x00\x13the disk is on fire"...), false
			}},
		} {
			r := command(t, "", "backup", "-port", relay(t, c.change), "-db", "tree", path)
			require.Equal(t, 1, r.exit, c.name)
			require.Contains(t, r.stderr, c.want, c.name)
			require.Empty(t, r.stdout)
			requireDescribed(t, path, said)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, left, 2, c.name)
		}
	}
}

// TestBackupIsInterrupted ends the command within a backup.
func TestBackupIsInterrupted(t *testing.T) {
	clear(t)
	succeed(t, "", "set", "-db", "tree", "k", strings.Repeat("v", 300<<10))
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	slow := relay(t, func(sent int, p []byte) ([]byte, bool) {
		if sent > 100_000 {
			cancel()
		}
		return p, true
	})
	var out, stderr bytes.Buffer
	exit := remote.Main(ctx, []string{"backup", "-port", slow, "-db", "tree", "-limit", "128k", filepath.Join(dir, "x.ktss")},
		strings.NewReader(""), &out, &stderr)
	require.Equal(t, 1, exit)
	require.Contains(t, stderr.String(), "canceled")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestServerStopsWithABackupThatStalls stops a server whose client has asked for a copy and takes
// none of it. Others go on until then.
func TestServerStopsWithABackupThatStalls(t *testing.T) {
	var stalled net.Conn
	var begin time.Time // of the stop
	t.Run("server", func(t *testing.T) {
		port := startServer(t, "", filepath.Join(t.TempDir(), "f.kct"))
		c := client.New("127.0.0.1:"+port, client.Options{})
		defer c.Close()
		for i := range 300 {
			require.NoError(t, c.DB("").Set(t.Context(), fmt.Sprint(i), make([]byte, 100_000), client.Never))
		}
		var err error
		stalled, err = net.Dial("tcp4", "127.0.0.1:"+port)
		require.NoError(t, err)
		_, err = stalled.Write(frame.AppendCopyRequest(nil, frame.CopyRequest{}))
		require.NoError(t, err)
		_, err = io.ReadFull(stalled, make([]byte, 1000))
		require.NoError(t, err)
		for i := range 300 {
			require.NoError(t, c.DB("").Set(t.Context(), fmt.Sprint(i), make([]byte, 100_000), client.Never))
		}
		require.NoError(t, c.DB("").Synchronize(t.Context(), true, ""))
		backUp(t, port, filepath.Join(t.TempDir(), "beside.ktss"))
		begin = time.Now()
	})
	require.NoError(t, stalled.Close())
	require.Less(t, time.Since(begin), 25*time.Second, "less than the time limit of a connection, 30 s")
}
