package client_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

func TestSetAndGet(t *testing.T) {
	_, db, _ := open(t)
	for name, row := range map[string]struct{ key, value string }{
		"text":       {"japan", "tokyo"},
		"empty":      {"", ""},
		"no value":   {"key", ""},
		"separators": {"a\tb\nc\r", "\x00\t\n\r%+"},
		"not UTF-8":  {"\xff\xfe", "\x80\x81"},
		"long text":  {strings.Repeat("k", 300), strings.Repeat("value ", 1000)},
		"long bytes": {"bin", strings.Repeat("\x00\xff\x80", 100_000)},
	} {
		require.NoError(t, db.Set(t.Context(), row.key, []byte(row.value), client.Never), name)
		value, err := db.Get(t.Context(), row.key)
		require.NoError(t, err, name)
		require.Equal(t, row.value, string(value), name)
	}
}

func TestAddReplaceAppendRemove(t *testing.T) {
	_, db, _ := open(t)
	ctx := t.Context()
	require.ErrorIs(t, db.Replace(ctx, "k", []byte("x"), client.Never), client.ErrNoRecord)
	require.NoError(t, db.Add(ctx, "k", []byte("a"), client.Never))
	require.ErrorIs(t, db.Add(ctx, "k", []byte("x"), client.Never), client.ErrDuplicate)
	require.NoError(t, db.Replace(ctx, "k", []byte("b"), client.Never))
	require.NoError(t, db.Append(ctx, "k", []byte("c"), client.Never))
	record, err := db.Seize(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, client.Record{Key: "k", Value: []byte("bc")}, record)
	require.ErrorIs(t, db.Remove(ctx, "k"), client.ErrNoRecord)
	_, err = db.Get(ctx, "k")
	require.ErrorIs(t, err, client.ErrNoRecord)
	exists, err := db.Exists(ctx, "k")
	require.NoError(t, err)
	require.False(t, exists)
}

func TestErrorsSayWhatTheServerSaid(t *testing.T) {
	c, db, _ := open(t)
	_, err := db.Get(t.Context(), "none")
	var failure *client.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, &client.Error{Code: client.Logic, Message: "DB: 7: no record: no record"}, failure)
	require.EqualError(t, err, "3: logical inconsistency: DB: 7: no record: no record")

	err = c.DB("none").Set(t.Context(), "k", nil, client.Never)
	require.EqualError(t, err, "2: invalid operation: no such database")
	_, err = db.Call(t.Context(), "no such/procedure")
	require.EqualError(t, err, "1: not implemented: not implemented: no such/procedure")
	require.EqualError(t, db.Synchronize(t.Context(), false, "not/allowed"),
		"5: internal error: DB: 8: logical inconsistency: postprocessing failed")
	_, err = db.MatchRegex(t.Context(), "(", -1)
	require.ErrorIs(t, err, client.ErrConflict)
}

func TestExpiration(t *testing.T) {
	_, db, _ := open(t)
	ctx := t.Context()
	year := time.Now().Add(365 * 24 * time.Hour).Truncate(time.Second)
	require.NoError(t, db.Set(ctx, "at", []byte("x"), client.At(year)))
	record, err := db.GetRecord(ctx, "at")
	require.NoError(t, err)
	require.True(t, record.Expires.Equal(year), record.Expires)

	require.NoError(t, db.Set(ctx, "in", []byte("xyz"), client.In(time.Hour)))
	size, expires, err := db.Check(ctx, "in")
	require.NoError(t, err)
	require.EqualValues(t, 3, size)
	require.WithinDuration(t, time.Now().Add(time.Hour), expires, time.Minute)

	for _, past := range []int64{-1000, 0, 1} {
		require.NoError(t, db.Set(ctx, "past", []byte("x"), client.At(time.Unix(past, 0))))
		_, err = db.Get(ctx, "past")
		require.ErrorIs(t, err, client.ErrNoRecord)
	}
	require.Equal(t, client.Never, client.At(time.Time{}))
}

func TestIncrement(t *testing.T) {
	_, db, _ := open(t)
	ctx := t.Context()
	sum, err := db.Increment(ctx, "n", 5, 10, client.Never)
	require.NoError(t, err)
	require.EqualValues(t, 15, sum)
	sum, err = db.Increment(ctx, "n", -16, 10, client.Never)
	require.NoError(t, err)
	require.EqualValues(t, -1, sum)
	sum, err = db.Increment(ctx, "n", 7, client.OrigSet, client.Never)
	require.NoError(t, err)
	require.EqualValues(t, 7, sum)
	_, err = db.Increment(ctx, "none", 1, client.OrigTry, client.Never)
	require.ErrorIs(t, err, client.ErrConflict)

	x, err := db.IncrementDouble(ctx, "x", 1.25, 0, client.Never)
	require.NoError(t, err)
	require.InDelta(t, 1.25, x, 1e-6)
	x, err = db.IncrementDouble(ctx, "x", -3.5, math.Inf(1), client.Never)
	require.NoError(t, err)
	require.InDelta(t, -3.5, x, 1e-6)
	_, err = db.IncrementDouble(ctx, "none", 1, math.Inf(-1), client.Never)
	require.ErrorIs(t, err, client.ErrConflict)
}

func TestCAS(t *testing.T) {
	_, db, _ := open(t)
	ctx := t.Context()
	require.ErrorIs(t, db.CAS(ctx, "k", []byte("a"), []byte("b"), client.Never), client.ErrConflict)
	require.NoError(t, db.CAS(ctx, "k", nil, []byte{}, client.Never))
	require.ErrorIs(t, db.CAS(ctx, "k", nil, []byte("b"), client.Never), client.ErrConflict)
	require.NoError(t, db.CAS(ctx, "k", []byte{}, []byte("b"), client.Never))
	require.NoError(t, db.CAS(ctx, "k", []byte("b"), nil, client.Never))
	exists, err := db.Exists(ctx, "k")
	require.NoError(t, err)
	require.False(t, exists)
}

func TestLargeValue(t *testing.T) {
	_, db, _ := open(t)
	value := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
	require.NoError(t, db.Set(t.Context(), "large", value, client.Never))
	have, err := db.Get(t.Context(), "large")
	require.NoError(t, err)
	require.True(t, bytes.Equal(value, have))
}
