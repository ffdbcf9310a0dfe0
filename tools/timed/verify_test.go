package timed_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/filestore"
	"gotycoon/db/record"
)

// crashed returns a copy of a database with its private log, in the state that a crash leaves: the
// newest record is in the log only.
func crashed(t *testing.T, records int) (path string, want map[string]string) {
	t.Helper()
	live := create(t)
	c, _ := openAs(t, live, "")
	d := c.DB(0)
	want = map[string]string{}
	for i := range records {
		key := fmt.Sprintf("key%05d", i)
		require.NoError(t, d.Set(nil, []byte(key), fmt.Appendf(nil, "value%0200d", i), record.Never))
		if i%3 > 0 {
			require.NoError(t, d.Remove(nil, []byte(key)))
			continue
		}
		want[key] = fmt.Sprintf("value%0200d", i)
		if i == records/2 {
			require.NoError(t, d.Synchronize(true, nil))
		}
	}
	path = filepath.Join(t.TempDir(), "a.kct")
	require.NoError(t, d.Synchronize(true, nil))
	require.NoError(t, d.Set(nil, []byte("newest"), []byte("x"), record.Never))
	want["newest"] = "x"
	copyWhole(t, live, path)
	require.NoError(t, os.CopyFS(path+".wal", os.DirFS(live+".wal")))
	require.NoError(t, c.Close())
	return path, want
}

// copyWhole copies a file as it is at one moment: a merge may be writing to it.
func copyWhole(t *testing.T, from, to string) {
	t.Helper()
	var before []byte
	require.Eventually(t, func() bool {
		now, err := os.ReadFile(from)
		same := err == nil && bytes.Equal(before, now)
		before = now
		return same
	}, 20*time.Second, time.Millisecond)
	require.NoError(t, os.WriteFile(to, before, 0o600))
}

// serve lets a server open a database and close it, and returns what then is in the file.
func serve(t *testing.T, path string) map[string]string {
	t.Helper()
	c, said := openAs(t, path, "")
	require.NoError(t, c.Close())
	require.Empty(t, said.String())
	return contents(t, path)
}

// destroy overwrites a part of a file.
func destroy(t *testing.T, path string, off, n int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteAt(make([]byte, n), off)
	require.NoError(t, err)
}

func TestVerifySound(t *testing.T) {
	e := newEra(t, 400)
	out := succeed(t, "verify", e.path)
	require.Contains(t, out, fmt.Sprintf("\nrecords: %d\n", len(e.states[400])))
	require.Contains(t, out, "\nclosed: yes\n")
	require.Equal(t, "sound\n", lastLine(out))
	require.Contains(t, succeed(t, "verify", e.path, e.dir), "\nupdates: 400\n")
	require.Contains(t, fail(t, "verify", e.path, e.dir+"x"), "the update log: open "+e.dir+"x: no such file or directory")
	path, _ := crashed(t, 100)
	out = succeed(t, "verify", path)
	require.Contains(t, out, "\nclosed: no\n")
	require.Contains(t, out, "\nupdates that the file lacks: 1\n")
	require.NotEmpty(t, serve(t, path)) // verify has changed nothing
}

func TestVerifyFindsDamage(t *testing.T) {
	page := int64(os.Getpagesize())
	path, _ := crashed(t, 3000)
	for off := int64(0); off < 12*page; off += page {
		bad := filepath.Join(t.TempDir(), "bad.kct")
		require.NoError(t, copyTo(path, bad))
		head := make([]byte, 10)
		f, err := os.Open(path)
		require.NoError(t, err)
		_, err = f.ReadAt(head, off)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		destroy(t, bad, off, page)
		r := command("", "verify", bad, path+".wal")
		if r.exit == 0 {
			continue // a free page
		}
		require.Contains(t, r.stderr, "kttimedmgr: "+bad+": page ", "%v", head)
		require.Contains(t, r.stderr, "the database is damaged")
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(5*page))
	require.NoError(t, f.Close())
	require.Contains(t, fail(t, "verify", path), "should have at least")
}

func TestVerifyFindsWhatIsWrongWithTheLog(t *testing.T) {
	path, _ := crashed(t, 10)
	away := path + ".away"
	require.NoError(t, os.Rename(path+".wal", away))
	require.Contains(t, fail(t, "verify", path), "is not there")
	require.Contains(t, fail(t, "verify", path, newEra(t, 3).dir), "newest updates are in another log")
	require.NoError(t, os.Rename(away, path+".wal"))
	require.Zero(t, command("", "verify", path).exit)

	e := newEra(t, 900)
	hurt := filepath.Join(t.TempDir(), "hurt")
	require.NoError(t, os.CopyFS(hurt, os.DirFS(e.dir)))
	destroy(t, filepath.Join(hurt, "0000000002.ulog"), 100, 4)
	require.Contains(t, fail(t, "verify", e.path, hurt), "damaged update log "+filepath.Join(hurt, "0000000002.ulog"))
	backup := filepath.Join(t.TempDir(), "backup.kct")
	require.NoError(t, copyTo(e.path, backup))
	c, _ := openAs(t, e.path, e.dir)
	e.write(t, c.DB(0), 900)
	require.NoError(t, c.Close())
	files, err := filepath.Glob(filepath.Join(e.dir, "*.ulog"))
	require.NoError(t, err)
	for _, f := range files[:len(files)-1] {
		require.NoError(t, os.Remove(f))
	}
	require.Contains(t, fail(t, "verify", backup, e.dir), "does not reach back to where the file ends")
	require.Zero(t, command("", "verify", e.path, e.dir).exit)
}

func TestCompact(t *testing.T) {
	path, want := crashed(t, 3000)
	before := description(t, path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	out := succeed(t, "compact", path)
	after, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, after.Size(), info.Size())
	require.Equal(t, fmt.Sprintf("before: %d\nafter: %d\n", info.Size(), after.Size()), out)
	require.Equal(t, withoutFigures(before), withoutFigures(description(t, path))) // so that the server goes on as after any crash
	require.Equal(t, 1, description(t, path).Format)
	require.Zero(t, command("", "verify", path).exit)
	require.Equal(t, want, serve(t, path))
	succeed(t, "compact", path)
	require.Equal(t, want, serve(t, path))
}

// withoutFigures returns a description without what changes when runs are merged.
func withoutFigures(m filestore.Meta) filestore.Meta {
	m.Format, m.Count, m.Bytes, m.Sum, m.MergeRun, m.MergedTo = 0, 0, 0, 0, 0, nil
	m.Packed = false
	return m
}

func TestCompactRefusesADamagedFile(t *testing.T) {
	path, _ := crashed(t, 3000)
	page := int64(os.Getpagesize())
	refused := 0
	for off := 2 * page; off < 30*page; off += 2 * page {
		bad := filepath.Join(t.TempDir(), "bad.kct")
		require.NoError(t, copyTo(path, bad))
		destroy(t, bad, off, page)
		was, err := os.ReadFile(bad)
		require.NoError(t, err)
		if r := command("", "compact", bad); r.exit > 0 {
			refused++
			require.Regexp(t, `bad\.kct(:| is damaged:) (run \d+: )?page`, r.stderr)
			now, err := os.ReadFile(bad)
			require.NoError(t, err)
			require.Equal(t, was, now)
		}
	}
	require.NotZero(t, refused)
}

func TestRepair(t *testing.T) {
	path, want := crashed(t, 3000)
	delete(want, "newest") // in the log
	page := int64(os.Getpagesize())
	size := func() int64 { info, err := os.Stat(path); require.NoError(t, err); return info.Size() }()
	whole, broken := 0, 0
	for off := int64(0); off < min(size, 200*page); off += 9 * page {
		bad, fresh := filepath.Join(t.TempDir(), "bad.kct"), filepath.Join(t.TempDir(), "fresh.kct")
		require.NoError(t, copyTo(path, bad))
		destroy(t, bad, off, page)
		was, err := os.ReadFile(bad)
		require.NoError(t, err)
		r := command("", "repair", bad, fresh)
		now, err := os.ReadFile(bad)
		require.NoError(t, err)
		require.Equal(t, was, now)
		got := contents(t, fresh)
		// a state before, during a merge of runs, has the same records, which nobody can know
		stale := strings.Contains(r.stdout, "these are the records of one before")
		require.True(t, maps.Equal(got, want) == (r.exit == 0) || stale && r.exit != 0, "offset %d: %d of %d records, %s%s", off, len(got), len(want), r.stdout, r.stderr)
		require.Contains(t, r.stdout, fmt.Sprintf("records saved: %d\n", len(got)))
		if r.exit == 0 {
			whole++
		} else {
			broken++
			require.True(t, stale || strings.Contains(r.stderr, "missing may be keys from") || strings.Contains(r.stderr, "missing, may be keys from"), r.stderr)
		}
	}
	require.NotZero(t, whole)
	require.NotZero(t, broken)
}

// A changed byte of a value looks like any other byte, where records do not stand in blocks. Only the
// checksum of all records shows the change.
func TestRepairIsNotCertainOfADamagedValue(t *testing.T) {
	path, want := crashed(t, 600)
	succeed(t, "compact", path)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	at := bytes.Index(data, []byte(want["key00003"]))
	require.Positive(t, at)
	data[at+150] ^= 4
	require.NoError(t, os.WriteFile(path, data, 0o600))
	fresh := filepath.Join(t.TempDir(), "fresh.kct")
	r := command("", "repair", path, fresh)
	require.NotZero(t, r.exit)
	require.Contains(t, r.stdout, "records whose contents cannot be verified: ")
	require.Contains(t, r.stdout, "the checksum of the records in the file does not match")
	require.Contains(t, r.stderr, "may differ from what was written")
	r = command("", "verify", path)
	require.NotZero(t, r.exit)
	require.Contains(t, r.stderr, "a record is, or was, not what had been written")
	require.NotContains(t, r.stderr, "page 0", "nobody knows on which page")
	require.Contains(t, fail(t, "compact", path), "the records of the file are not those that it says it has")
	require.NotContains(t, command("", "verify", fresh).stderr, "not what had been written", "a new file, whose user has been told")
}

// What the private log has is brought into the repaired file by recover.
func TestRepairAndRecover(t *testing.T) {
	path, want := crashed(t, 300)
	destroy(t, path, 0, int64(os.Getpagesize()))
	fresh := filepath.Join(t.TempDir(), "fresh.kct")
	r := command("", "repair", path, fresh)
	require.Zero(t, r.exit, r.stderr)
	advice := fmt.Sprintf("recover %s %s", path+".wal", path)
	require.True(t, strings.Contains(r.stderr, "recover "+fresh+" "+path+".wal") || strings.Contains(r.stderr, advice), r.stderr)
	require.Zero(t, command("", "recover", fresh, path+".wal").exit)
	require.Equal(t, want, contents(t, fresh))
	require.Contains(t, fail(t, "repair", path, fresh), "exists")
	nothing := filepath.Join(t.TempDir(), "nothing.kct")
	require.NoError(t, os.WriteFile(nothing, make([]byte, 100_000), 0o600))
	require.Contains(t, fail(t, "repair", nothing, nothing+".kct"), "nothing in it can be read")
	require.NoFileExists(t, nothing+".kct")
}
