package server_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"gotycoon/db"
	"gotycoon/db/filestore"
	"gotycoon/db/rebuild"
	"gotycoon/db/record"
	"gotycoon/internal/freeport"
	"gotycoon/server"
)

// This file is the matrix of docs/upgrading.md: each kind of file in a newer form, which this program
// does not know, and in its older forms.

// contentOf returns the files below a directory, or a file.
func contentOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	}))
	return all
}

// replace replaces bytes in all files that match a pattern.
func replace(t *testing.T, pattern, from, to string) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text), from)
		require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte(from), []byte(to)), 0o600))
	}
}

// stored makes a database file with a record, and an update log. crashed leaves them as a server
// does that is killed.
func stored(t *testing.T, dir string, crashed bool) func(*server.Config) {
	t.Helper()
	made := t.TempDir()
	c, err := db.Open([]string{filepath.Join(made, "a.kct")}, db.Options{LogDir: filepath.Join(made, "ulog"), SID: 1})
	require.NoError(t, err)
	require.NoError(t, c.DB(0).Set(nil, []byte("k"), []byte("v"), record.XT(record.MaxXT)))
	if !crashed {
		require.NoError(t, c.Close())
	}
	require.NoError(t, os.CopyFS(dir, os.DirFS(made)))
	if crashed {
		require.NoError(t, c.Close())
	}
	return func(c *server.Config) {
		c.Databases, c.UpdateLog, c.ServerID = []string{filepath.Join(dir, "a.kct")}, filepath.Join(dir, "ulog"), 1
	}
}

// secondFormat gives a database file another format in its description, with a new checksum.
func secondFormat(t *testing.T, path string) {
	t.Helper()
	file, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, file.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(filestore.MetaBucket))
		text := string(b.Get([]byte(filestore.MetaKey)))
		at := strings.Index(text, `,"Check":"`)
		require.Positive(t, at, text)
		text = strings.Replace(text[:at], `"Format":2`, `"Format":99`, 1)
		require.Contains(t, text, `"Format":99`)
		sum := xxhash.New()
		_, _ = sum.WriteString(text)
		return b.Put([]byte(filestore.MetaKey), []byte(text+`,"Check":"`+hex.EncodeToString(sum.Sum(nil))+`"}`))
	}))
	require.NoError(t, file.Close())
}

const (
	commitNow  = "\xff\xff\xa0\x01" // database 65535, the operation, the version
	commitNext = "\xff\xff\xa0\x02"
)

// A file of a newer version ends the start with a text that says so, and is not changed: also what a
// newer server had acknowledged when it was killed is no torn write.
func TestFilesOfNewerVersionsAreRefusedAndStayAsTheyAre(t *testing.T) {
	for name, row := range map[string]struct {
		want string
		make func(t *testing.T, dir string) func(*server.Config)
	}{
		"database": {"the file has format 99, this program knows the formats 1 to 3: a newer version has written it. Start that version",
			func(t *testing.T, dir string) func(*server.Config) {
				change := stored(t, dir, false)
				secondFormat(t, filepath.Join(dir, "a.kct"))
				return change
			}},
		"update log": {"a newer version of the server has written this log, and this one cannot read it; start that version",
			func(t *testing.T, dir string) func(*server.Config) {
				change := stored(t, dir, false)
				replace(t, filepath.Join(dir, "ulog", "*.ulog"), commitNow, commitNext)
				return change
			}},
		"update log of a server that was killed": {"a newer version of the server has written this log",
			func(t *testing.T, dir string) func(*server.Config) {
				change := stored(t, dir, true)
				replace(t, filepath.Join(dir, "ulog", "*.ulog"), commitNow, commitNext)
				return change
			}},
		"snapshot": {"could not apply a snapshot", func(t *testing.T, dir string) func(*server.Config) {
			require.NoError(t, os.CopyFS(dir, os.DirFS("../compat/testdata/snapshot")))
			replace(t, filepath.Join(dir, "*.ktss"), "KTSS\n\x00", "KTSS\n\x01")
			return func(c *server.Config) { c.Snapshots.Dir = dir }
		}},
		"election": {"a newer version of the server has written the file, and this one cannot read it; start that version",
			func(t *testing.T, dir string) func(*server.Config) {
				secret, port := secretFile(t, clusterSecret), freeport.Take(t)
				member := func(c *server.Config) {
					c.Databases, c.UpdateLog, c.ServerID, c.Port = []string{filepath.Join(dir, "a.kct")}, filepath.Join(dir, "ulog"), 1, port
					c.Cluster.Name, c.Cluster.Join, c.Cluster.Advertise = "shop", true, fmt.Sprintf("127.0.0.1:%d", port)
					c.Members.Secret = secret
				}
				require.Zero(t, start(t, member).stop())
				replace(t, filepath.Join(dir, "ulog.cluster", "election"), "gtelect1", "gtelect2")
				return member
			}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			change := row.make(t, dir)
			kept := dir
			if name == "election" { // the databases are opened and closed before
				kept = filepath.Join(dir, "ulog.cluster", "election")
			}
			before := contentOf(t, kept)
			cfg := server.DefaultConfig()
			cfg.Port = 0
			change(&cfg)
			var out, errs buffer
			require.Equal(t, 1, server.Run(context.Background(), cfg, &out, &errs), "%v", out.lines())
			require.Contains(t, strings.Join(append(out.lines(), errs.lines()...), "\n"), row.want)
			require.Equal(t, before, contentOf(t, kept))
		})
	}
}

// Every older form of a file is opened, and goes on to be used.
func TestFilesOfOlderVersionsAreOpened(t *testing.T) {
	dir := t.TempDir()
	first := filepath.Join(dir, "first.kct") // of format 1, as 'kttimedmgr compact' makes it
	b, err := rebuild.New(first, rebuild.Options{})
	require.NoError(t, err)
	require.NoError(t, b.Append([]byte("k"), append(record.AppendXT(nil, record.MaxXT), 'v')))
	require.NoError(t, b.Commit(filestore.Meta{ID: filestore.NewID(), Clean: true}))

	logs, rts := filepath.Join(dir, "ulog"), filepath.Join(dir, "rts")
	require.NoError(t, os.CopyFS(logs, os.DirFS("../compat/testdata/ulog"))) // of the original
	require.NoError(t, os.WriteFile(rts, []byte("00001795228510168000\n"), 0o600))

	snapshots := filepath.Join(dir, "snapshots") // of the original, too
	require.NoError(t, os.CopyFS(snapshots, os.DirFS("../compat/testdata/snapshot")))

	services := filepath.Join(dir, "services.kct")
	c, err := db.Open([]string{services}, db.Options{})
	require.NoError(t, err) // the bound of a sequence, from before there were server IDs in its key
	require.NoError(t, c.DB(0).Set(nil, []byte("sequence\x000\x00"), strconv.AppendInt(nil, time.Now().Unix(), 10), record.XT(record.MaxXT)))
	require.NoError(t, c.Close())

	s := start(t, func(c *server.Config) {
		c.Databases, c.UpdateLog, c.ServerID = []string{first}, logs, 7
		c.RTSPath, c.MasterHost, c.MasterPort = rts, "127.0.0.1", 1
	})
	status, body := s.dial().get("/k")
	require.Equal(t, 200, status)
	require.Equal(t, "v", body)
	require.Equal(t, "1795228510168000", s.ask("/rpc/report")["repl_timestamp"])
	require.Len(t, s.ask("/rpc/ulog_list"), 3, "those of the original, of which the last goes on")
	require.Zero(t, s.stop())

	sequences := freeport.Take(t)
	s = start(t, func(c *server.Config) {
		c.Databases, c.Snapshots.Dir = []string{":", "%"}, snapshots
		c.Services.Database, c.Services.SequencePort = services, sequences
	})
	talk(t, sequences, "GET /fetch HTTP/1.1\r\n\r\n", "200 OK")
	require.NotEqual(t, "0", s.ask("/rpc/report")["db_total_count"])
	require.Zero(t, s.stop())
}
