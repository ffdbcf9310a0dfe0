package db

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/record"
	"gotycoon/ulog"
)

// forever is what the expiration time of records that stay looks like in front of their values.
const forever = "\xff\xff\xff\xff\xff"

// fillWith returns a function that adds records, values with their expiration time.
func fillWith(records map[string]string) filling {
	return func(add func(key, value []byte) error) error {
		for key, value := range records {
			if err := add([]byte(key), []byte(value)); err != nil {
				return err
			}
		}
		return nil
	}
}

// numbered is n records and what a database of them shows.
func numbered(n int) (stored, shown map[string]string) {
	stored, shown = map[string]string{}, map[string]string{}
	for i := range n {
		key := fmt.Sprintf("k%05d", i)
		stored[key], shown[key] = forever+key, key
	}
	return stored, shown
}

func TestLoadIntoMemory(t *testing.T) {
	for _, expr := range []string{":", "*", "%", "-", "+", "%#rcomp=dec", "%#rcomp=lexdesc"} {
		c := mustOpen(t, Options{}, expr)
		stored, shown := numbered(3000)
		require.NoError(t, c.DB(0).Load(fillWith(stored)))
		require.Equal(t, shown, contents(t, c.DB(0)), expr)
	}
}

func TestLoadedRecordsExpire(t *testing.T) {
	now := newClock()
	c := mustOpen(t, Options{Now: now.now}, ":")
	d := c.DB(0)
	soon := record.AppendXT(nil, now.seconds.Load()+10)
	require.NoError(t, d.Load(fillWith(map[string]string{"a": string(soon) + "v", "b": forever + "v"})))
	now.advance(20)
	require.NoError(t, d.Vacuum(nil, 0))
	require.Equal(t, map[string]string{"b": "v"}, contents(t, d))
	require.True(t, d.sweeper.mortals.Load() > 0)
}

func TestLoadRefusesWhatCannotBeSeen(t *testing.T) {
	c := mustOpen(t, Options{}, ":")
	require.ErrorContains(t, c.DB(0).Load(fillWith(map[string]string{"k": "v"})), "has no expiration time")
	c = mustOpen(t, Options{}, ":#ktopts=p")
	require.NoError(t, c.DB(0).Load(fillWith(map[string]string{"k": "v"})))
	require.Equal(t, map[string]string{"k": "v"}, contents(t, c.DB(0)))
}

func TestRestoreFile(t *testing.T) {
	for _, expr := range []string{"a.kch", "a.kct", "a.kcd", "a.kcf", "a.kct#rcomp=dec", "a.kct#rcomp=decdesc"} {
		expr := filepath.Join(t.TempDir(), expr)
		stored, shown := numbered(3000)
		require.NoError(t, RestoreFile(expr, Options{CheckpointSize: 64 << 10}, fillWith(stored)))
		for range 2 {
			c := mustOpen(t, Options{}, expr)
			require.Equal(t, shown, contents(t, c.DB(0)), expr)
			require.NoError(t, c.Close())
			require.ErrorIs(t, RestoreFile(expr, Options{}, fillWith(stored)), os.ErrExist)
		}
	}
}

func TestRestoreTextFile(t *testing.T) {
	expr := filepath.Join(t.TempDir(), "a.kcx")
	require.NoError(t, RestoreFile(expr, Options{}, fillWith(map[string]string{"0000000000000000": forever + "one"})))
	d := mustOpen(t, Options{}, expr).DB(0)
	require.NoError(t, d.Set(nil, []byte("x"), []byte("two"), record.Never))
	require.Equal(t, map[string]string{"0000000000000000": "one", "0000000000000009": "two"}, contents(t, d))
}

func TestRestoreFileIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.kct")
	broken := errors.New("damaged")
	stored, shown := numbered(3000)
	require.ErrorIs(t, RestoreFile(path, Options{}, func(add func(key, value []byte) error) error {
		require.NoError(t, fillWith(stored)(add))
		require.NoFileExists(t, path)
		left := image(t, dir) // a crash now
		require.NoError(t, RestoreFile(filepath.Join(left, "a.kct"), Options{}, fillWith(stored)))
		require.Equal(t, shown, contents(t, mustOpen(t, Options{}, filepath.Join(left, "a.kct")).DB(0)))
		return broken
	}), broken)
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestRollForward(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, Options{LogDir: dir, SID: 1}, ":", "%")
	set := func(i int, key, value string) {
		require.NoError(t, c.DB(i).Set(nil, []byte(key), []byte(value), record.Never))
	}
	set(0, "a", "1")
	set(1, "a", "1")
	first, err := c.DB(0).Freeze()
	require.NoError(t, err)
	require.NoError(t, first.Close())
	set(0, "b", "2")
	set(1, "b", "2")
	second, err := c.DB(1).Freeze()
	require.NoError(t, err)
	require.NoError(t, second.Close())
	require.NoError(t, c.DB(0).Replicate(nil, []ulog.Update{{SID: 9, Op: ulog.OpSet, Key: []byte("c"), Value: []byte(forever + "3")}}, nil))
	require.NoError(t, c.DB(1).Clear(nil))
	set(1, "d", "4")
	require.NoError(t, c.DB(0).Remove(nil, []byte("a")))
	require.NoError(t, c.Close())

	c = mustOpen(t, Options{LogDir: dir, SID: 1}, ":", "%")
	last := c.Log().Last()
	require.NoError(t, c.DB(0).Load(fillWith(map[string]string{"a": forever + "1", "x": forever + "x"})))
	require.NoError(t, c.DB(1).Load(fillWith(map[string]string{"a": forever + "1"})))
	require.NoError(t, c.RollForward([]Restored{{c.DB(0), first.Stamp()}, {c.DB(1), second.Stamp()}}))
	require.Equal(t, map[string]string{"x": "x", "b": "2", "c": "3"}, contents(t, c.DB(0)))
	require.Equal(t, map[string]string{"d": "4"}, contents(t, c.DB(1)))
	require.Equal(t, last, c.Log().Last(), "nothing is logged again")
}

func TestSnapshotOutdated(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, Options{LogDir: dir, SID: 1}, ":")
	require.False(t, c.SnapshotOutdated(c.DB(0), 1))
	require.NoError(t, c.SnapshotTaken(c.DB(0), "p", 7))
	require.NoError(t, c.Close())
	c = mustOpen(t, Options{LogDir: dir, SID: 1}, ":")
	require.True(t, c.SnapshotOutdated(c.DB(0), 6))
	require.False(t, c.SnapshotOutdated(c.DB(0), 7))
	require.False(t, c.SnapshotOutdated(c.DB(0), 8))
}

// BenchmarkRollForward replays updates of 100 bytes into a database in memory.
func BenchmarkRollForward(b *testing.B) {
	dir := b.TempDir()
	c := mustOpen(b, Options{LogDir: dir, SID: 1}, ":")
	value := make([]byte, 80)
	var p Pending
	for i := range b.N {
		require.NoError(b, c.DB(0).Set(&p, fmt.Appendf(nil, "key%09d", i%1_000_000), value, record.Never))
	}
	require.NoError(b, p.Wait())
	require.NoError(b, c.Close())
	c = mustOpen(b, Options{LogDir: dir, SID: 1}, ":")
	start := time.Now()
	b.ResetTimer()
	require.NoError(b, c.RollForward([]Restored{{c.DB(0), 1}}))
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "updates/s")
}

// BenchmarkRestoreFile makes a file of records of 100 bytes.
func BenchmarkRestoreFile(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.kct")
	value := append([]byte(forever), make([]byte, 80)...)
	start := time.Now()
	require.NoError(b, RestoreFile(path, Options{}, func(add func(key, value []byte) error) error {
		for i := range b.N {
			if err := add(fmt.Appendf(nil, "key%09d", i), value); err != nil {
				return err
			}
		}
		return nil
	}))
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "records/s")
}
