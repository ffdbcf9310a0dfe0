package db

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/ordered"
	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// freezeKinds are databases of every kind and order.
var freezeKinds = []string{":", "*", "*#capcnt=800", "%", "-", "+", "%#rcomp=lexdesc", "%#rcomp=dec", ":#ktopts=p",
	"f.kch", "f.kct", "f.kcd", "f.kcf#rcomp=decdesc", "f.kct#rcomp=lexdesc#ktopts=p", "f.kcx"}

// eachKind runs a test with databases of the expressions; those that begin with f are put into
// files.
func eachKind(t *testing.T, exprs []string, test func(t *testing.T, expr string)) {
	dir := t.TempDir() // that of a subtest may have a # in its name
	for i, expr := range exprs {
		t.Run(expr, func(t *testing.T) {
			if expr[0] == 'f' {
				expr = filepath.Join(dir, fmt.Sprint(i)+expr)
			}
			test(t, expr)
		})
	}
}

// frozenContents scans a Frozen as contents scans a database, with the stored values, and closes
// it.
func frozenContents(t *testing.T, f *Frozen) map[string]string {
	t.Helper()
	defer func() { require.NoError(t, f.Close()) }()
	got := map[string]string{}
	require.NoError(t, f.Scan(func(key, stored []byte) error {
		got[string(key)] = string(stored)
		return nil
	}))
	require.EqualValues(t, len(got), f.Count())
	return got
}

// beside runs work in goroutines, each again and again, until main has returned.
func beside(main func(), work ...func()) {
	var stop atomic.Bool
	var all sync.WaitGroup
	for _, f := range work {
		all.Go(func() {
			for !stop.Load() {
				f()
			}
		})
	}
	main()
	stop.Store(true)
	all.Wait()
}

// TestFreezeEqualsTheLog freezes beside writers. What a Frozen shows must be what the update log
// makes up to its stamp.
func TestFreezeEqualsTheLog(t *testing.T) {
	kinds := []string{":", "*", "%", "%#rcomp=decdesc", "f.kct", "f.kch"}
	eachKind(t, kinds, func(t *testing.T, expr string) {
		o := Options{LogDir: filepath.Join(t.TempDir(), "ulog"), CheckpointSize: 8 << 10, Now: newClock().now} // nothing expires
		c := mustOpen(t, o, expr)
		d := c.DB(0)
		seen := map[ulog.Stamp]map[string]string{}
		beside(func() {
			for range 4 {
				f, err := d.Freeze()
				require.NoError(t, err)
				require.Equal(t, c.Log().ID(), f.LogID)
				seen[f.Stamp()] = frozenContents(t, f)
			}
		}, func() { randomWrite(t, d) }, func() { randomWrite(t, d) })
		require.Len(t, seen, 4)
		for at, got := range seen {
			require.Equal(t, replayed(t, c, at), got)
		}
	})
}

// randomWrite does one update of any kind that is logged.
func randomWrite(t *testing.T, d *DB) {
	key := fmt.Append(nil, rand.IntN(1000))
	var err error
	switch n := rand.IntN(500); {
	case n == 0:
		err = d.Clear(nil)
	case n < 150:
		_, err = d.RemoveBulk(nil, [][]byte{key, fmt.Append(nil, rand.IntN(1000))}, n%2 == 0)
	case n < 200:
		recs := make([]Record, 10)
		for i := range recs {
			recs[i] = Record{Key: fmt.Append(nil, rand.IntN(1000)), Value: key, XT: record.Never}
		}
		_, err = d.SetBulk(nil, recs, n%2 == 0)
	case n < 300:
		err = d.Append(nil, key, []byte("more"), record.Never)
	default:
		err = d.Set(nil, key, []byte(strings.Repeat("v", rand.IntN(100))), record.XT(rand.IntN(3)))
	}
	if err != nil {
		t.Errorf("write: %v", err)
	}
}

// replayed returns what the shared log makes of database 0 up to a stamp.
func replayed(t *testing.T, c *Catalog, upTo ulog.Stamp) map[string]string {
	t.Helper()
	got := map[string]string{}
	r, err := c.Log().NewReader(0)
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
		switch u.Op {
		case ulog.OpSet:
			got[string(u.Key)] = string(u.Value)
		case ulog.OpRemove:
			delete(got, string(u.Key))
		case ulog.OpClear:
			clear(got)
		}
	}
}

// mustFreeze freezes a database and copies it in the same section of the commit lock.
func mustFreeze(t *testing.T, d *DB) (f *Frozen, want map[string]string) {
	t.Helper()
	f, want = &Frozen{order: d.expr.Params.RComp}, map[string]string{}
	var err error
	f.records, err = ordered.Unwrap(d.store).(store.Freezer).Freeze(func(take func()) {
		d.commitMu.Lock()
		defer d.commitMu.Unlock()
		take()
		require.NoError(t, d.store.Scan(store.Start{Edge: true}, func(key, stored []byte) bool {
			want[string(key)] = string(stored)
			return true
		}))
	})
	require.NoError(t, err)
	return f, want
}

// TestFreezeEqualsACopy freezes every kind of database several times at once while records are
// written, expire, are collected, dropped and cleared.
func TestFreezeEqualsACopy(t *testing.T) {
	eachKind(t, freezeKinds, func(t *testing.T, expr string) {
		clk := newClock()
		c := mustOpen(t, Options{Now: clk.now, CheckpointSize: 16 << 10}, expr)
		d := c.DB(0)
		for range 1000 {
			randomWrite(t, d)
		}
		freeze := func() {
			for range 3 {
				f, want := mustFreeze(t, d)
				other, same := mustFreeze(t, d)
				require.Equal(t, want, frozenContents(t, f))
				require.Equal(t, same, frozenContents(t, other))
			}
		}
		beside(freeze, func() { randomWrite(t, d) }, func() { randomWrite(t, d) }, func() {
			clk.advance(1)
			if err := d.Vacuum(nil, 0); err != nil {
				t.Errorf("vacuum: %v", err)
			}
		})
	})
}

// TestFreezeGoesThroughInOrder visits slowly: writers finish long before the scan does.
func TestFreezeGoesThroughInOrder(t *testing.T) {
	orders := map[string]string{
		"%": "-5 010 1 10 9 x", "%#rcomp=lexdesc": "x 9 10 1 010 -5", "%#rcomp=dec": "-5 x 1 9 010 10",
		"f.kct": "-5 010 1 10 9 x", "f.kct#rcomp=lexdesc": "x 9 10 1 010 -5", "f.kct#rcomp=decdesc": "10 010 9 1 x -5",
	}
	eachKind(t, slices.Collect(maps.Keys(orders)), func(t *testing.T, expr string) {
		want := orders[strings.TrimLeft(filepath.Base(expr), "0123456789")]
		c := mustOpen(t, Options{}, expr)
		d := c.DB(0)
		for key := range strings.FieldsSeq(want) {
			require.NoError(t, d.Set(nil, []byte(key), []byte("old"), record.Never))
		}
		f, err := d.Freeze()
		require.NoError(t, err)
		defer f.Close()
		require.Zero(t, f.LogID)
		var keys []string
		require.NoError(t, f.Scan(func(key, stored []byte) error {
			_, value, _ := d.Split(stored)
			require.Equal(t, "old", string(value))
			require.NoError(t, d.Set(nil, key, []byte("new"), record.Never))
			require.NoError(t, d.Set(nil, append([]byte("between"), key...), []byte("new"), record.Never))
			if len(keys) == 3 {
				require.NoError(t, d.Clear(nil))
			}
			keys = append(keys, string(key))
			return nil
		}))
		require.Equal(t, want, strings.Join(keys, " "))
	})
}

// TestFreezeOfAReadOnlyDatabase shows what a replay has brought into memory, too.
func TestFreezeOfAReadOnlyDatabase(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r.kct")
	c := mustOpen(t, Options{}, path)
	require.NoError(t, c.DB(0).Set(nil, []byte("in the file"), []byte("1"), record.Never))
	require.NoError(t, c.DB(0).Synchronize(true, nil))
	require.NoError(t, c.DB(0).Set(nil, []byte("in the log"), []byte("2"), record.Never))
	left := image(t, dir)
	c = mustOpen(t, Options{ReadOnly: true}, filepath.Join(left, "r.kct"))
	f, err := c.DB(0).Freeze()
	require.NoError(t, err)
	got := frozenContents(t, f)
	require.NoError(t, f.Close())
	require.Len(t, got, 2)
}

// TestFrozenFileOutlastsCheckpoints reads what the file was after many checkpoints have gone into
// it.
func TestFrozenFileOutlastsCheckpoints(t *testing.T) {
	c := mustOpen(t, Options{}, filepath.Join(t.TempDir(), "o.kct"))
	d := c.DB(0)
	for i := range 500 {
		require.NoError(t, d.Set(nil, fmt.Append(nil, i), []byte("old"), record.Never))
	}
	f, want := mustFreeze(t, d)
	for round := range 5 {
		for i := range 500 {
			require.NoError(t, d.Set(nil, fmt.Append(nil, i+round), []byte(strings.Repeat("new", round)), record.Never))
		}
		require.NoError(t, d.Synchronize(true, nil))
	}
	require.Equal(t, want, frozenContents(t, f))
}
