package db

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/gate"
	"gotycoon/db/record"
	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
)

const aheadSize = 1 << 10

// openAhead opens a database in a file, from whose values of aheadSize bytes on they go ahead.
func openAhead(t *testing.T, dir string, fs *faultfs.FS) (*Catalog, *DB) {
	t.Helper()
	o := in(dir)
	o.FS, o.ahead, o.SyncInterval = fs, aheadSize, time.Hour
	c := mustOpen(t, o, filepath.Join(dir, "f.kct"))
	return c, c.DB(0)
}

// segments returns how many files the log has.
func segments(t *testing.T, d *DB) int {
	t.Helper()
	files, err := d.log.Files()
	require.NoError(t, err)
	return len(files)
}

// left returns what is left of values in the directory of a database's log.
func left(t *testing.T, d *DB) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(d.log.Dir(), "value-*"))
	require.NoError(t, err)
	return found
}

func largeAs(key string) []byte { return bytes.Repeat([]byte(key), aheadSize) }

func roomFor(value []byte) []byte { return append(make([]byte, record.Headroom), value...) }

// Every way to store a large value as it is writes it to the log first, where it becomes a segment,
// and reads it back after a restart.
func TestLargeValuesGoAhead(t *testing.T) {
	dir := t.TempDir()
	c, d := openAhead(t, dir, faultfs.New(vfs.OS{}))
	require.NoError(t, d.Set(nil, []byte("old"), []byte("v"), record.Never))
	for key, store := range map[string]func(key, value []byte) error{
		"a": func(key, value []byte) error { return d.Set(nil, key, value, record.Never) },
		"b": func(key, value []byte) error {
			return d.StoreInPlace(nil, key, roomFor(value), record.Never, record.Anyway)
		},
		"c":   func(key, value []byte) error { return d.Add(nil, key, value, record.Never) },
		"old": func(key, value []byte) error { return d.Replace(nil, key, value, record.Never) },
		"d": func(key, value []byte) error {
			_, err := d.SetBulk(nil, []Record{{Key: key, Value: value, Room: roomFor(value), XT: record.Never}}, false)
			return err
		},
		"e": func(key, value []byte) error {
			_, err := d.SetBulk(nil, []Record{{Key: key, Value: value, XT: record.Never}}, true)
			return err
		},
	} {
		before := segments(t, d)
		require.NoError(t, store([]byte(key), largeAs(key)))
		require.Equal(t, before+1, segments(t, d), key)
		require.NoError(t, d.Set(nil, []byte("small"), []byte(key), record.Never))
	}
	before := segments(t, d)
	require.Equal(t, dberr.ErrDuplicate, d.Add(nil, []byte("a"), largeAs("x"), record.Never))
	require.Equal(t, dberr.ErrNoRecord, d.Replace(nil, []byte("none"), largeAs("x"), record.Never))
	require.Equal(t, before, segments(t, d))
	require.Empty(t, left(t, d))
	want := contents(t, d)
	require.Len(t, want, 7)
	for _, key := range []string{"a", "b", "c", "d", "e", "old"} {
		require.Equal(t, string(largeAs(key)), want[key])
	}
	c.stopBackground()
	abandon(c) // the values are only in the log
	c, d = openAhead(t, dir, faultfs.New(vfs.OS{}))
	require.Equal(t, want, contents(t, d))
	require.NoError(t, c.Close())
}

// While the disk takes a large value, other records can be stored, and those of the same key, too.
func TestNobodyWaitsForALargeValue(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	c, d := openAhead(t, t.TempDir(), fs)
	entered, release := make(chan struct{}, 1), make(chan struct{})
	fs.OnSync(func() { entered <- struct{}{}; <-release })
	done := make(chan error)
	go func() { done <- d.Set(nil, []byte("large"), largeAs("l"), record.Never) }()
	<-entered
	for i := range 100 {
		require.NoError(t, d.Set(nil, fmt.Append(nil, i), []byte("v"), record.Never))
	}
	require.NoError(t, d.Set(nil, []byte("large"), []byte("small"), record.Never))
	fs.OnSync(nil)
	close(release)
	require.NoError(t, <-done)
	value, _, err := d.Get(nil, nil, []byte("large"))
	require.NoError(t, err)
	require.Equal(t, largeAs("l"), value, "it was stored last")
	require.NoError(t, c.Close())
}

// A large value that the disk does not take is refused as one that there is no room for, and the
// server goes on.
func TestNoRoomForALargeValue(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	c, d := openAhead(t, t.TempDir(), fs)
	fs.Space(aheadSize)
	require.Equal(t, dberr.ErrNoSpace, d.Set(nil, []byte("large"), largeAs("ll"), record.Never))
	fs.Space(1 << 20)
	require.EqualValues(t, 1, c.Gate().Refusals().Disk)
	require.True(t, c.Gate().RanOut())
	require.Empty(t, left(t, d))
	require.NoError(t, d.Set(nil, []byte("small"), []byte("v"), record.Never))
	require.NoError(t, d.Set(nil, []byte("large"), largeAs("l"), record.Never))

	c.Gate().Set(gate.Limits{Disk: 0})
	require.Equal(t, dberr.ErrNoSpace, d.Set(nil, []byte("large"), largeAs("m"), record.Never))
	require.Empty(t, left(t, d))
	require.NoError(t, c.Close())
}

// A large value whose update is refused after it was written is removed, and one that meets a
// transaction becomes a part of that.
func TestALargeValueThatIsNotStored(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	c, d := openAhead(t, t.TempDir(), fs)
	whileItIsWritten := func(store func() error, f func()) error {
		entered, release := make(chan struct{}, 1), make(chan struct{})
		fs.OnSync(func() { entered <- struct{}{}; <-release })
		done := make(chan error)
		go func() { done <- store() }()
		<-entered
		fs.OnSync(nil)
		f()
		close(release)
		return <-done
	}
	before := segments(t, d)
	err := whileItIsWritten(func() error { return d.Add(nil, []byte("k"), largeAs("a"), record.Never) },
		func() { require.NoError(t, d.Set(nil, []byte("k"), []byte("v"), record.Never)) })
	require.Equal(t, dberr.ErrDuplicate, err)
	err = whileItIsWritten(func() error { return d.Set(nil, []byte("k"), largeAs("a"), record.Never) }, func() { c.SetGuarded(true) })
	require.Equal(t, dberr.ErrReadOnly, err)
	c.SetGuarded(false)
	require.Empty(t, left(t, d))

	var tx *Transaction
	err = whileItIsWritten(func() error { return d.Set(nil, []byte("k"), largeAs("t"), record.Never) }, func() {
		tx, err = d.Begin(nil, false)
		require.NoError(t, err)
		tx.Share()
	})
	require.NoError(t, err)
	require.Empty(t, left(t, d))
	require.NoError(t, d.Set(nil, []byte("k2"), largeAs("u"), record.Never))
	require.Equal(t, before, segments(t, d), "nothing of a transaction is in the log before its commit")
	require.NoError(t, tx.Commit(nil))
	require.Equal(t, map[string]string{"k": string(largeAs("t")), "k2": string(largeAs("u"))}, contents(t, d))
	require.NoError(t, c.Close())
}
