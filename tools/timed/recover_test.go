package timed_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/filestore"
	"gotycoon/db/rebuild"
	"gotycoon/db/record"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// era is a log that a server has written, with the records of its database after every update.
type era struct {
	dir    string // of the log
	path   string // of the database file
	stamps []ulog.Stamp
	states []map[string]string // before the first, and after each
}

// openAs opens a database as a server does. It returns what the server says.
func openAs(t *testing.T, path, logDir string) (*db.Catalog, *bytes.Buffer) {
	t.Helper()
	var said bytes.Buffer
	c, err := db.Open([]string{path}, db.Options{LogDir: logDir, SID: 1, LogLimit: 10_000, Logger: slog.New(slog.NewTextHandler(&said,
		&slog.HandlerOptions{Level: slog.LevelWarn}))})
	require.NoError(t, err)
	return c, &said
}

// write makes n random updates.
func (e *era) write(t *testing.T, d *db.DB, n int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, uint64(len(e.states))))
	for range n {
		now := maps.Clone(e.states[len(e.states)-1])
		key := fmt.Sprintf("key%03d", rnd.IntN(300))
		switch n := rnd.IntN(200); {
		case n == 0:
			require.NoError(t, d.Clear(nil))
			clear(now)
		case n < 40 && now[key] != "":
			require.NoError(t, d.Remove(nil, []byte(key)))
			delete(now, key)
		default:
			now[key] = fmt.Sprint("value", len(e.states))
			require.NoError(t, d.Set(nil, []byte(key), []byte(now[key]), record.Never))
		}
		e.states = append(e.states, now)
	}
}

// newEra lets a server write n updates and stop.
func newEra(t *testing.T, n int) *era {
	t.Helper()
	root := t.TempDir()
	e := &era{dir: filepath.Join(root, "ulog"), path: filepath.Join(root, "live.kct"), states: []map[string]string{{}}}
	c, _ := openAs(t, e.path, e.dir)
	e.write(t, c.DB(0), n)
	require.NoError(t, c.Close())
	e.readStamps(t)
	return e
}

func (e *era) readStamps(t *testing.T) {
	t.Helper()
	r, err := ulog.OpenReader(vfs.OS{}, e.dir, 0, ulog.ReaderOptions{})
	require.NoError(t, err)
	defer r.Close()
	e.stamps = nil
	for {
		entry, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		e.stamps = append(e.stamps, entry.Stamp)
	}
	require.Len(t, e.stamps, len(e.states)-1)
}

// contents returns the records of a file, without expiration times.
func contents(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := rebuild.Open(path, false, true)
	require.NoError(t, err)
	defer f.Close()
	records := map[string]string{}
	require.NoError(t, f.Records(func(key, value []byte) error {
		records[string(key)] = string(value[5:])
		return nil
	}))
	require.Equal(t, f.Meta().Count, f.Bottom().Count)
	if f.Runs() == 0 {
		require.EqualValues(t, len(records), f.Meta().Count)
	}
	return records
}

func description(t *testing.T, path string) filestore.Meta {
	t.Helper()
	f, err := rebuild.Open(path, false, true)
	require.NoError(t, err)
	defer f.Close()
	return f.Meta()
}

func create(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.kct")
	succeed(t, "create", path)
	return path
}

func rfc(s ulog.Stamp) string { return time.Unix(0, int64(s)).Format(time.RFC3339Nano) }

// Whatever moment is asked for: the file has exactly the updates up to there, and a server with the log takes it as it is.
func TestRecoverUntil(t *testing.T) {
	e := newEra(t, 900)
	rnd := rand.New(rand.NewPCG(9, 9))
	for range 12 {
		n := rnd.IntN(len(e.stamps))
		for _, moment := range []string{fmt.Sprint(e.stamps[n]), rfc(e.stamps[n]), fmt.Sprint(min(e.stamps[n]+1, e.stamps[min(n+1, len(e.stamps)-1)]-1))} {
			path := create(t)
			r := command("", "recover", "--until", moment, path, e.dir)
			require.Zero(t, r.exit, r.stderr)
			require.Equal(t, n+1, count(t, r.stdout), moment)
			require.Contains(t, r.stderr, fmt.Sprintf("is complete up to the time stamp %d (", e.stamps[n]))
			require.Equal(t, e.states[n+1], contents(t, path))
		}
	}
}

func TestRecoverUntilThenServe(t *testing.T) {
	e := newEra(t, 500)
	path := create(t)
	require.Zero(t, command("", "recover", "--until", fmt.Sprint(e.stamps[99]), path, e.dir).exit)
	want := maps.Clone(e.states[100])
	for i := range 3 {
		c, said := openAs(t, path, e.dir)
		key := fmt.Sprint("later", i)
		require.NoError(t, c.DB(0).Set(nil, []byte(key), []byte("x"), record.Never))
		want[key] = "x"
		require.NoError(t, c.Close())
		require.Empty(t, said.String())
		require.Equal(t, want, contents(t, path))
	}
	again := command("", "recover", "--until", fmt.Sprint(e.stamps[200]), path, e.dir)
	require.Equal(t, 1, again.exit)
	require.Contains(t, again.stderr, "begin with an older copy")
	require.Equal(t, want, contents(t, path))
}

// A file may be moved on from one moment to a later one.
func TestRecoverUntilInSteps(t *testing.T) {
	e := newEra(t, 300)
	path := create(t)
	require.Zero(t, command("", "recover", "--until", fmt.Sprint(e.stamps[99]), path, e.dir).exit)
	require.Zero(t, command("", "recover", "--until", fmt.Sprint(e.stamps[199]), path, e.dir).exit)
	require.Equal(t, e.states[200], contents(t, path))
	r := command("", "recover", "-ts", fmt.Sprint(e.stamps[199]), "--until", fmt.Sprint(e.stamps[249]), path, e.dir)
	require.Zero(t, r.exit, r.stderr)
	require.Equal(t, 50, count(t, r.stdout))
	require.Equal(t, e.states[250], contents(t, path))
	none := command("", "recover", "--until", "2001-01-01T00:00:00Z", create(t), e.dir)
	require.Zero(t, none.exit)
	require.Empty(t, none.stdout)
}

func TestRecoverUntilNeedsAMoment(t *testing.T) {
	e, path := newEra(t, 3), create(t)
	for text, complaint := range map[string]string{
		"1795228492":           "is no time stamp",
		"1795228492165":        "is no time stamp",
		"yesterday":            "is neither a time stamp nor a time",
		"2026-11-21T10:00:00":  "is neither a time stamp nor a time",
		"2026-11-21":           "is neither a time stamp nor a time",
		"-5":                   "is neither a time stamp nor a time",
		"9999-01-01T00:00:00Z": "is not within the times",
		"":                     "is neither a time stamp nor a time",
	} {
		require.Contains(t, fail(t, "recover", "-until", text, path, e.dir), complaint)
	}
	require.Contains(t, fail(t, "recover", path), "\nusage:\n")
	require.Empty(t, contents(t, path))
}

// After a full recovery a server with that log goes on from there: it brings in what came later, once.
func TestRecoverThenServe(t *testing.T) {
	e := newEra(t, 300)
	path := create(t)
	require.Zero(t, command("", "recover", path, e.dir).exit)
	require.Equal(t, e.states[300], contents(t, path))
	c, _ := openAs(t, e.path, e.dir) // the server goes on with the other file for a while
	e.write(t, c.DB(0), 50)
	require.NoError(t, c.Close())
	c, said := openAs(t, path, e.dir)
	require.NoError(t, c.Close())
	require.Empty(t, said.String())
	require.Equal(t, e.states[350], contents(t, path))
}

// A copy of the file knows where it ends: only what is later is read, and no server ID hides anything.
func TestRecoverACopy(t *testing.T) {
	e := newEra(t, 200)
	backup := filepath.Join(t.TempDir(), "backup.kct")
	c, _ := openAs(t, e.path, e.dir)
	require.NoError(t, c.DB(0).Synchronize(true, func(path string, _ ulog.Stamp) error { return copyTo(path, backup) }))
	e.write(t, c.DB(0), 120)
	require.NoError(t, c.Close())
	e.readStamps(t)
	require.False(t, description(t, backup).Clean)

	first := filepath.Join(t.TempDir(), "first.kct")
	require.NoError(t, copyTo(backup, first))
	r := command("", "recover", "--until", fmt.Sprint(e.stamps[259]), first, e.dir)
	require.Zero(t, r.exit, r.stderr)
	require.Equal(t, 60, count(t, r.stdout))
	require.Equal(t, e.states[260], contents(t, first))

	early := command("", "recover", "--until", fmt.Sprint(e.stamps[100]), backup, e.dir)
	require.Equal(t, 1, early.exit)
	require.Contains(t, early.stderr, "complete up to the time stamp")

	r = command("", "recover", backup, e.dir)
	require.Zero(t, r.exit, r.stderr)
	require.Equal(t, 120, count(t, r.stdout))
	require.Contains(t, r.stderr, fmt.Sprintf("is complete up to the time stamp %d", e.stamps[319]))
	require.NoError(t, os.Rename(backup, e.path))
	c, said := openAs(t, e.path, e.dir)
	require.NoError(t, c.Close())
	require.Empty(t, said.String())
	require.Equal(t, e.states[320], contents(t, e.path))
}

func copyTo(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// A log that does not reach back is no ground for a guess.
func TestRecoverAcrossAGap(t *testing.T) {
	e := newEra(t, 900)
	require.NoError(t, os.Remove(filepath.Join(e.dir, "0000000001.ulog")))
	path := create(t)
	before := contents(t, path)
	require.Contains(t, fail(t, "recover", "--until", fmt.Sprint(e.stamps[800]), path, e.dir), "does not reach back")
	require.Equal(t, before, contents(t, path))
	r := command("", "recover", "-ts", "1", "--until", fmt.Sprint(e.stamps[800]), path, e.dir)
	require.Zero(t, r.exit, r.stderr)
	require.NotEmpty(t, contents(t, path))
	require.Zero(t, command("", "recover", create(t), e.dir).exit) // as with the original
}

func TestRecoverServerIDs(t *testing.T) {
	dir := t.TempDir()
	log, err := ulog.Open(dir, ulog.Options{})
	require.NoError(t, err)
	for sid := range uint16(3) {
		_, err = log.Append([]ulog.Update{{SID: sid, Op: ulog.OpSet, Key: fmt.Append(nil, sid), Value: []byte("\xff\xff\xff\xff\xffv")}})
		require.NoError(t, err)
	}
	require.NoError(t, log.Close())
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "1 2"}, {[]string{"-sid", "1"}, "0 2"}, {[]string{"-until", "4000000000000000000"}, "0 1 2"},
		{[]string{"-until", "4000000000000000000", "-sid", "2"}, "0 1"},
	} {
		path, got := create(t), ""
		require.Zero(t, command("", append(append([]string{"recover"}, tc.args...), path, dir)...).exit)
		for _, key := range []string{"0", "1", "2"} {
			if _, ok := contents(t, path)[key]; ok {
				got += " " + key
			}
		}
		require.Equal(t, " "+tc.want, got)
	}
	only := t.TempDir()
	log, err = ulog.Open(only, ulog.Options{})
	require.NoError(t, err)
	_, err = log.Append([]ulog.Update{{Op: ulog.OpSet, Key: []byte("k"), Value: []byte("\xff\xff\xff\xff\xffv")}})
	require.NoError(t, err)
	require.NoError(t, log.Close())
	r := command("", "recover", create(t), only)
	require.Zero(t, r.exit)
	require.Contains(t, r.stderr, "come from server 0")
}

// With -ulog the updates go to another log too, as coming from where they came from, and the file belongs to that.
func TestRecoverLogsAgain(t *testing.T) {
	e := newEra(t, 300)
	path, again := create(t), filepath.Join(t.TempDir(), "again")
	require.Contains(t, fail(t, "recover", "-ulog", e.dir, path, e.dir), "cannot be the one that is written")
	succeed(t, "recover", "-ulog", again, "-ulim", "1k", path, e.dir)
	e.dir = again
	e.readStamps(t)
	r, err := ulog.OpenReader(vfs.OS{}, again, 0, ulog.ReaderOptions{})
	require.NoError(t, err)
	entry, err := r.Next()
	require.NoError(t, err)
	u, err := ulog.ParseMessage(entry.Message)
	require.NoError(t, err)
	require.Equal(t, uint16(1), u.SID)
	require.NoError(t, r.Close())
	c, said := openAs(t, path, again)
	require.NoError(t, c.Close())
	require.Empty(t, said.String())
	require.Equal(t, e.states[300], contents(t, path))
}

// A file whose server has crashed is brought up to date from its own log before another log goes on top.
func TestRecoverOverACrashedFile(t *testing.T) {
	e := newEra(t, 100)
	path := create(t)
	c, _ := openAs(t, path, "")
	require.NoError(t, c.DB(0).Set(nil, []byte("mine"), []byte("x"), record.Never))
	crashed := filepath.Join(t.TempDir(), "a.kct")
	require.NoError(t, copyTo(path, crashed))
	require.NoError(t, os.CopyFS(crashed+".wal", os.DirFS(path+".wal")))
	require.NoError(t, c.Close())
	require.Empty(t, contents(t, crashed))
	require.Zero(t, command("", "recover", crashed, e.dir).exit)
	want := maps.Clone(e.states[100])
	if _, cleared := clearedIn(e); !cleared {
		want["mine"] = "x"
	}
	require.Equal(t, want, contents(t, crashed))
}

func clearedIn(e *era) (int, bool) {
	for i, s := range e.states[1:] {
		if len(s) == 0 {
			return i, true
		}
	}
	return 0, false
}

func TestRecoverAFileInUse(t *testing.T) {
	e, path := newEra(t, 10), create(t)
	c, _ := openAs(t, path, "")
	for _, args := range [][]string{{"recover", "-otl", path, e.dir}, {"compact", "-otl", path}, {"verify", "-otl", path},
		{"repair", "-otl", path, path + ".new.kct"}} {
		require.Contains(t, fail(t, args...), "another process has the file open")
	}
	require.NoError(t, c.Close())
	require.NoFileExists(t, path+".new.kct")
}

func TestRecoverRefuses(t *testing.T) {
	e := newEra(t, 10)
	path := create(t)
	require.Contains(t, fail(t, "recover", "nofile.kch", e.dir), "no repository: open failed (file not found)\nkttimedmgr: nofile.kch: there is no")
	require.Contains(t, fail(t, "recover", path, "nodir"), "UpdateLogger::open failed: "+path)
	require.Contains(t, fail(t, "recover", ":", e.dir), "in memory")
	require.Contains(t, fail(t, "recover", path+"#rcomp=dec", e.dir), "decimal order")
}
