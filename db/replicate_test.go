package db

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// stored is a value as updates carry it: with an expiration time, here one in 1970.
func stored(value string) []byte { return append([]byte{0, 0, 0, 0, 9}, value...) }

func setFrom(sid uint16, key string, value []byte) ulog.Update {
	return ulog.Update{SID: sid, DBID: 77, Op: ulog.OpSet, Key: []byte(key), Value: value}
}

// logged returns the updates in a log as text.
func logged(t *testing.T, l *ulog.Log) (lines []string) {
	t.Helper()
	r, err := l.NewReader(0)
	require.NoError(t, err)
	defer r.Close()
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		require.NoError(t, err)
		u, err := ulog.ParseMessage(e.Message)
		require.NoError(t, err)
		lines = append(lines, fmt.Sprintf("%d %d %x %s %q", u.SID, u.DBID, byte(u.Op), u.Key, u.Value))
	}
}

func TestReplicatedUpdatesAreStoredAndLoggedAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{":", "%", filepath.Join(dir, "a.kch"), filepath.Join(dir, "a.kct")} {
		t.Run(path, func(t *testing.T) {
			c := mustOpen(t, in(t.TempDir()), ":", path)
			d := c.DB(1)
			mustSet(t, d, "old", "x")
			cursor := d.NewCursor()
			require.NoError(t, cursor.Jump(nil))
			before := c.Log().Last()
			var p Pending
			require.NoError(t, d.Replicate(&p, []ulog.Update{
				setFrom(3, "before", stored("x")),
				{SID: 4, Op: ulog.OpClear},
				setFrom(3, "a", stored("1")),
				setFrom(5, "a", stored("2")),
				setFrom(65535, "b", stored("")),
				{SID: 0, Op: ulog.OpRemove, Key: []byte("missing")},
				{SID: 5, Op: ulog.OpRemove, Key: []byte("b")},
				setFrom(5, "short", []byte("abc")),
			}, nil))
			require.Greater(t, c.Log().Last(), before)
			require.NoError(t, p.Wait())
			require.Equal(t, []string{
				`1 1 a1 old "\xff\xff\xff\xff\xffx"`,
				`3 1 a1 before "\x00\x00\x00\x00\tx"`,
				`4 1 a5  ""`,
				`3 1 a1 a "\x00\x00\x00\x00\t1"`,
				`5 1 a1 a "\x00\x00\x00\x00\t2"`,
				`65535 1 a1 b "\x00\x00\x00\x00\t"`,
				`0 1 a2 missing ""`,
				`5 1 a2 b ""`,
				`5 1 a1 short "abc"`,
			}, logged(t, c.Log()))
			value, _, err := d.store.Get(nil, []byte("a"), nil)
			require.NoError(t, err)
			require.Equal(t, stored("2"), value)
			n, err := d.Count(nil)
			require.NoError(t, err)
			require.EqualValues(t, 2, n, "a and short")
			_, _, err = d.Get(nil, nil, []byte("a"))
			require.Equal(t, dberr.ErrNoRecord, err, "it has expired")
			_, err = cursor.GetKey(nil, false)
			require.Equal(t, dberr.ErrNoRecord, err, "the clear has unset it")
		})
	}
}

func TestReplicatedUpdatesSurviveAKill(t *testing.T) {
	dir := t.TempDir()
	for _, o := range []Options{in(dir), {}} {
		path := filepath.Join(t.TempDir(), "a.kct#ktopts=p")
		d := mustOpen(t, o, path).DB(0)
		var ups []ulog.Update
		for i := range 3*chunkRecords + 1 {
			ups = append(ups, setFrom(9, fmt.Sprint(i), []byte("v")))
		}
		require.NoError(t, d.Replicate(nil, ups, nil))
		require.Len(t, contents(t, d), len(ups))
		after := image(t, filepath.Dir(d.path()))
		if o.LogDir != "" {
			o.LogDir = filepath.Join(image(t, dir), "ulog")
		}
		d = mustOpen(t, o, filepath.Join(after, "a.kct#ktopts=p")).DB(0)
		require.Len(t, contents(t, d), len(ups))
	}
}

func TestReplicaLeavesOutWhatItCannotHold(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, in(dir), filepath.Join(dir, "a.kct"))
	err := c.DB(0).Replicate(nil, []ulog.Update{
		setFrom(3, "a", stored("1")),
		setFrom(3, strings.Repeat("k", 1<<16), stored("2")),
		{SID: 3, Op: 0xA7, Value: []byte("what")},
		setFrom(3, "b", stored("3")),
	}, nil)
	var refused *dberr.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, dberr.InvalidOperation, refused.Code)
	require.Contains(t, refused.Message, "the key is longer")
	require.Equal(t, map[string]string{"a": "1", "b": "3"}, contents(t, c.DB(0)))
	require.Len(t, logged(t, c.Log()), 2)

	err = c.DB(0).Replicate(nil, []ulog.Update{{SID: 3, Op: 0xA7}}, nil)
	require.EqualError(t, err, "2: invalid operation: unknown operation 0xa7 in an update")
}

func TestReadOnlyReplicaRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.kct")
	require.NoError(t, mustOpen(t, Options{}, path).Close())
	d := mustOpen(t, Options{ReadOnly: true}, path).DB(0)
	require.Equal(t, dberr.ErrReadOnly, d.Replicate(nil, []ulog.Update{setFrom(3, "a", stored("1"))}, nil))
}

func TestReplicatedLinesOfATextDatabase(t *testing.T) {
	d := mustOpen(t, Options{}, filepath.Join(t.TempDir(), "a.kcx#ktopts=p")).DB(0)
	mustSet(t, d, "ignored", "one")
	require.NoError(t, d.Replicate(nil, []ulog.Update{
		setFrom(3, "key of the original", []byte("two")),
		setFrom(3, "0000000000000000", []byte("three")),
	}, nil))
	mustSet(t, d, "ignored", "four")
	require.Equal(t, map[string]string{
		"0000000000000000": "one", "0000000000000004": "two", "0000000000000008": "three", "000000000000000E": "four",
	}, contents(t, d))
}

func TestReplicaChunks(t *testing.T) {
	clearing := ulog.Update{Op: ulog.OpClear}
	big := setFrom(1, "k", make([]byte, chunkBytes))
	small := setFrom(1, "k", nil)
	many := make([]ulog.Update, chunkRecords+1)
	for _, row := range []struct {
		name string
		ups  []ulog.Update
		want int
	}{
		{"one", []ulog.Update{small}, 1},
		{"clear first", []ulog.Update{clearing, small}, 1},
		{"clear between", []ulog.Update{small, small, clearing}, 2},
		{"two clears", []ulog.Update{clearing, clearing}, 1},
		{"larger than a chunk", []ulog.Update{big, small, big}, 2},
		{"many", many, chunkRecords},
	} {
		require.Equal(t, row.want, replicaChunk(row.ups), row.name)
	}
}

func TestSyncedLogsSurviveAPowerCut(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, in(dir), ":", filepath.Join(dir, "a.kct"))
	require.NoError(t, c.SyncLogs())
	var p Pending
	require.NoError(t, c.DB(0).Set(&p, []byte("a"), []byte("b"), record.Never))
	require.NoError(t, c.SyncLogs(), "nobody has waited for the write")
	require.Len(t, logged(t, c.Log()), 1)
	require.NoError(t, p.Wait())
}
