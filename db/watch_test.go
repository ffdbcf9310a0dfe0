package db

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/keymatch"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

func openWatched(t *testing.T, expr string, o WatchOptions) *DB {
	t.Helper()
	c, err := Open([]string{expr}, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	c.DB(0).Watch(o)
	return c.DB(0)
}

func TestEveryUpdateChangesTheVersion(t *testing.T) {
	d := openWatched(t, "%", WatchOptions{Uniques: true})
	key, value := []byte("k"), []byte("v")
	last := d.unique(key)
	require.Equal(t, last, d.unique(key))
	for _, one := range []struct {
		name   string
		update func() error
	}{
		{"set", func() error { return d.Set(nil, key, value, record.Never) }},
		{"append", func() error { return d.Append(nil, key, nil, record.Never) }},
		{"touch", func() error { return d.Touch(nil, key, record.Never) }},
		{"cas", func() error { return d.Set(nil, key, value, record.Never) }},
		{"clear", func() error { return d.Clear(nil) }},
		{"bulk", func() error { _, err := d.SetBulk(nil, []Record{{Key: key, Value: value}}, true); return err }},
		{"replicate", func() error { return d.Replicate(nil, []ulog.Update{{Op: ulog.OpRemove, Key: key}}, nil, nil) }},
	} {
		require.NoError(t, one.update(), one.name)
		require.NotEqual(t, last, d.unique(key), one.name)
		last = d.unique(key)
		require.Positive(t, last)
		require.Less(t, last, uint64(1)<<versionBits)
	}
}

func TestUndoneUpdatesChangeTheVersion(t *testing.T) {
	d := openWatched(t, "%", WatchOptions{Uniques: true})
	before := d.unique([]byte("k"))
	tx, err := d.Begin(nil, false)
	require.NoError(t, err)
	tx.Share()
	require.NoError(t, d.Set(nil, []byte("k"), []byte("v"), record.Never))
	within := d.unique([]byte("k"))
	require.NotEqual(t, before, within)
	require.NoError(t, tx.Abort())
	require.NotEqual(t, within, d.unique([]byte("k")))
}

func TestAcceptVersionTellsTheVersionOfItsOwnUpdate(t *testing.T) {
	d := openWatched(t, ":", WatchOptions{Uniques: true})
	key := []byte("k")
	store := func(_, _ []byte, _ int64, _ bool) record.Verdict {
		return record.Verdict{Op: record.Store, Value: []byte("v")}
	}
	version, err := d.Accept(nil, key, store)
	require.NoError(t, err)
	require.Equal(t, version, d.unique(key))
	var seen sync.Map
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				version, err := d.Accept(nil, key, store)
				if _, double := seen.LoadOrStore(version, true); double || err != nil {
					t.Errorf("%d twice: %v", version, err)
				}
			}
		})
	}
	wg.Wait()
	kept, err := d.Accept(nil, key, func(_, _ []byte, _ int64, _ bool) record.Verdict { return record.Verdict{} })
	require.NoError(t, err)
	require.Equal(t, d.unique(key), kept)
}

// mustClaim claims the first message of a name.
func mustClaim(t *testing.T, d *DB, prefix, want string) *Claim {
	t.Helper()
	c, err := d.Claim(nil, nil, []byte(prefix), nil)
	require.NoError(t, err)
	require.Equal(t, want, string(c.Key))
	return c
}

func visibleKeys(t *testing.T, d *DB) string {
	t.Helper()
	keys, err := keymatch.MatchPrefix(d, nil, nil, nil, -1, nil)
	require.NoError(t, err)
	n, err := d.Count(nil)
	require.NoError(t, err)
	require.EqualValues(t, len(keys), n)
	return fmt.Sprintf("%s", keys)
}

func TestClaimedRecordsAreHidden(t *testing.T) {
	var news []string
	d := openWatched(t, "%", WatchOptions{Claims: true, News: func(key []byte) { news = append(news, string(key)) }})
	for _, key := range []string{"a 1", "a 2", "ab 1", "b"} {
		require.NoError(t, d.Set(nil, []byte(key), []byte("v"+key), record.Never))
	}
	first, second := mustClaim(t, d, "a ", "a 1"), mustClaim(t, d, "a ", "a 2")
	require.Equal(t, "va 1", string(first.Value))
	_, err := d.Claim(nil, nil, []byte("a "), nil)
	require.ErrorIs(t, err, dberr.ErrNoRecord)
	require.Equal(t, "[ab 1 b]", visibleKeys(t, d))
	_, _, err = d.Get(nil, nil, []byte("a 1"))
	require.ErrorIs(t, err, dberr.ErrNoRecord)
	require.ErrorIs(t, d.Replace(nil, []byte("a 1"), nil, record.Never), dberr.ErrNoRecord)
	cur := d.NewCursor()
	require.NoError(t, cur.JumpKey(nil, []byte("a 1")))
	key, err := cur.GetKey(nil, false)
	require.NoError(t, err)
	require.Equal(t, "ab 1", string(key))

	require.NoError(t, first.Finish(nil))
	news = nil
	require.NoError(t, second.GiveBack(nil))
	require.Equal(t, []string{"a 2"}, news)
	require.Equal(t, "[a 2 ab 1 b]", visibleKeys(t, d))
	_, err = d.Claim(nil, nil, []byte("a "), []byte("a 3"))
	require.ErrorIs(t, err, dberr.ErrNoRecord)
}

func TestClaimsThatOthersOverwrite(t *testing.T) {
	d := openWatched(t, "%", WatchOptions{Claims: true})
	set := func(value string) { require.NoError(t, d.Set(nil, []byte("a 1"), []byte(value), record.XT(100))) }
	for name, row := range map[string]struct {
		meanwhile func() error
		finished  string // what is there when the claim is finished afterwards
	}{
		"nothing": {func() error { return nil }, "[]"},
		"set":     {func() error { return d.Set(nil, []byte("a 1"), []byte("new"), record.Never) }, "[a 1]"},
		"removed": {func() error { _ = d.Remove(nil, []byte("a 1")); return nil }, "[]"},
		"cleared": {func() error { return d.Clear(nil) }, "[]"},
	} {
		set("old")
		c := mustClaim(t, d, "a ", "a 1")
		require.NoError(t, row.meanwhile(), name)
		require.NoError(t, c.Finish(nil), name)
		require.Equal(t, row.finished, visibleKeys(t, d), name)

		require.NoError(t, d.Clear(nil))
		set("old")
		c = mustClaim(t, d, "a ", "a 1")
		require.NoError(t, row.meanwhile(), name)
		require.NoError(t, c.GiveBack(nil), name)
		value, xt, err := d.Get(nil, nil, []byte("a 1"))
		require.NoError(t, err, name)
		require.Equal(t, "old", string(value), name)
		require.Equal(t, record.MaxXT, xt, name)
		require.NoError(t, d.Clear(nil))
	}
}

// A claim is not in the log: what is not finished is there again after a crash.
func TestClaimsDoNotOutliveTheProcess(t *testing.T) {
	path := t.TempDir() + "/q.kct"
	c, err := Open([]string{path}, Options{})
	require.NoError(t, err)
	d := c.DB(0)
	d.Watch(WatchOptions{Claims: true})
	for _, key := range []string{"a 1", "a 2", "a 3"} {
		require.NoError(t, d.Set(nil, []byte(key), []byte("v"), record.Never))
	}
	require.NoError(t, mustClaim(t, d, "a ", "a 1").Finish(nil))
	mustClaim(t, d, "a ", "a 2")
	c.stopBackground()
	abandon(c) // as a kill does

	c, err = Open([]string{path}, Options{})
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, "[a 2 a 3]", visibleKeys(t, c.DB(0)))
}

func TestOneRecordIsClaimedOnce(t *testing.T) {
	d := openWatched(t, "%", WatchOptions{Claims: true})
	const records = 400
	for i := range records {
		require.NoError(t, d.Set(nil, fmt.Appendf(nil, "a %04d", i), nil, record.Never))
	}
	var seen sync.Map
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				c, err := d.Claim(nil, nil, []byte("a "), nil)
				if err != nil {
					return
				}
				if _, double := seen.LoadOrStore(string(c.Key), true); double {
					t.Errorf("%s twice", c.Key)
				}
				if err := c.Finish(nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, "[]", visibleKeys(t, d))
}
