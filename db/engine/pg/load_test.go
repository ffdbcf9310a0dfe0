package pg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/pg"
	"gotycoon/ulog"
)

// numbered returns n records one after the other, and calls at with the number of each.
func numbered(n int, value string, at func(i int) error) func() (engine.Change, error) {
	i := 0
	return func() (engine.Change, error) {
		if i == n {
			return engine.Change{}, io.EOF
		}
		i++
		k := key(fmt.Sprintf("%07d", i*7919%n)) // in no order
		log := []ulog.Update{{SID: 1, Op: ulog.OpSet, Key: k.Key, Value: append([]byte{255, 255, 255, 255, 255}, value...)}}
		return engine.Change{Key: k, Value: []byte(value), XT: engine.Forever, If: engine.Any, Log: log}, at(i)
	}
}

// loaded requires the engine to have n records, all with one value, and to count as many.
func loaded(t *testing.T, e *pg.Engine, n int, value string) {
	t.Helper()
	counted, _, err := e.Count(t.Context(), 0)
	require.NoError(t, err)
	require.EqualValues(t, n, counted)
	seen := 0
	for from, more := []byte(nil), true; more; {
		page, err := e.Scan(t.Context(), engine.Scan{Key: from, Edge: from == nil, Limit: 5000})
		require.NoError(t, err)
		for _, r := range page.Records {
			require.Equal(t, value, string(r.Value))
			from = r.Key.Key
			seen++
		}
		more = page.More
	}
	require.Equal(t, n, seen)
}

// Answers of PostgreSQL that are lost while records are loaded make none of them come twice, in the
// records or in the log.
func TestLoadWithLostAnswers(t *testing.T) {
	const n = 20_000
	p, url := newProxy(t, setUp(t))
	e := open(t, url, pg.Options{})
	defer e.Close()
	stored, err := e.Load(t.Context(), numbered(n, "v", func(i int) error {
		if i%9000 == 0 {
			p.answers.Store(1)
		}
		return nil
	}))
	require.NoError(t, err)
	require.Equal(t, n, stored)
	require.Positive(t, p.swallows.Load())
	loaded(t, e, n, "v")
	_, updates := logged(t, e)
	require.Equal(t, n, updates)
}

// A load that was interrupted can be made again: groups whose records are there already are
// written, and the others copied.
func TestLoadAgain(t *testing.T) {
	const n = 20_000
	e := open(t, setUp(t), pg.Options{})
	defer e.Close()
	ctx, cancel := context.WithCancel(t.Context())
	stored, err := e.Load(ctx, numbered(n, "first", func(i int) error {
		if i == 15_000 {
			cancel()
		}
		return nil
	}))
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, stored, n)
	broken := errors.New("the file is damaged")
	_, err = e.Load(t.Context(), numbered(n, "second", func(i int) error {
		if i == 10_000 {
			return broken
		}
		return nil
	}))
	require.ErrorIs(t, err, broken)
	stored, err = e.Load(t.Context(), numbered(n, "third", func(int) error { return nil }))
	require.NoError(t, err)
	require.Equal(t, n, stored)
	loaded(t, e, n, "third")

	_, err = e.Load(t.Context(), func() (engine.Change, error) {
		return engine.Change{Key: key(string(make([]byte, 3000))), If: engine.Any}, nil
	})
	require.Equal(t, engine.Refused, engine.KindOf(err))
}

// logged returns how many groups and updates the log has.
func logged(t *testing.T, e *pg.Engine) (groups, updates int) {
	t.Helper()
	for after := engine.Stamp(0); ; {
		some, upTo, err := e.Log().Read(t.Context(), after, 64<<20)
		require.NoError(t, err)
		for _, g := range some {
			groups++
			updates += len(g.Updates)
		}
		if len(some) == 0 {
			return groups, updates
		}
		after = upTo
	}
}
