package db

import (
	"errors"
	"fmt"
	"gotycoon/db/dberr"
	"gotycoon/db/engine/mem"
	"gotycoon/db/expr"
	"gotycoon/db/record"
	"math/rand/v2"
	"path/filepath"
	"sort"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// model is what a database should hold: a plain map with absolute expiration times.
type model struct {
	records map[string]modelRecord
	clock   *clock
}

type modelRecord struct {
	value string
	xt    int64
}

func (m *model) get(key string) (modelRecord, bool) {
	r, ok := m.records[key]
	if ok && m.clock.seconds.Load() > r.xt {
		return r, false
	}
	return r, ok
}

func (m *model) set(key, value string, xt record.XT) {
	r := modelRecord{value, record.MaxXT}
	if xt != record.Never {
		r.xt = m.clock.seconds.Load() + int64(xt)
	}
	m.records[key] = r
}

// live returns the keys of the records that have not expired, sorted.
func (m *model) live() []string {
	var keys []string
	for key := range m.records {
		if _, ok := m.get(key); ok {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	return keys
}

// TestModel does random operations to every kind of database and to a map, and compares after each.
func TestModel(t *testing.T) {
	for _, expr := range []string{":", "*", "%", "-", "+", "m.kch", "m.kct", "m.kcd", "m.kcf", "%#rcomp=decdesc", "shared"} {
		t.Run(expr, func(t *testing.T) {
			for seed := range uint64(3) {
				runModel(t, expr, seed)
			}
		})
	}
}

func runModel(t *testing.T, expr string, seed uint64) {
	clk := newClock()
	if expr[0] == 'm' {
		expr = filepath.Join(t.TempDir(), expr)
	}
	o := Options{Now: clk.now, CheckpointSize: 8 << 10}
	if expr == "shared" {
		o.Shared = &clocked{mem.New(mem.Options{}).Server("a"), clk}
	}
	c := mustOpen(t, o, expr)
	d, m := c.DB(0), &model{map[string]modelRecord{}, clk}
	rnd := rand.New(rand.NewPCG(seed, 7))
	for range 1500 {
		key := strconv.Itoa(rnd.IntN(60))
		modelStep(t, rnd, d, m, key)
		want, ok := m.get(key)
		got, xt, err := d.Get(nil, []byte("x"), []byte(key))
		if !ok {
			require.ErrorIs(t, err, dberr.ErrNoRecord)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "x"+want.value, "x"+string(got))
		require.Equal(t, want.xt, xt)
	}
	requireCursorSees(t, d, m)
	require.NoError(t, d.Vacuum(nil, 0))
	n, err := d.Count(nil)
	require.NoError(t, err)
	require.Equal(t, int64(len(m.live())), n, "after a vacuum only live records are left")
	require.NoError(t, c.Close())
}

// modelStep does one random operation to both.
func modelStep(t *testing.T, rnd *rand.Rand, d *DB, m *model, key string) {
	k, value := []byte(key), fmt.Sprint(rnd.IntN(1000))
	xt := record.Never
	if rnd.IntN(3) == 0 {
		xt = record.XT(rnd.IntN(5))
	}
	old, exists := m.get(key)
	switch rnd.IntN(12) {
	case 0, 1, 2:
		require.NoError(t, d.Set(nil, k, []byte(value), xt))
		m.set(key, value, xt)
	case 3:
		requireUnless(t, exists, dberr.ErrDuplicate, d.Add(nil, k, []byte(value), xt))
		if !exists {
			m.set(key, value, xt)
		}
	case 4:
		requireUnless(t, !exists, dberr.ErrNoRecord, d.Replace(nil, k, []byte(value), xt))
		if exists {
			m.set(key, value, xt)
		}
	case 5:
		require.NoError(t, d.Append(nil, k, []byte(value), xt))
		if exists {
			value = old.value + value
		}
		m.set(key, value, xt)
	case 6:
		requireUnless(t, !exists, dberr.ErrNoRecord, d.Remove(nil, k))
		delete(m.records, key)
	case 7:
		got, _, err := d.Seize(nil, nil, k)
		requireUnless(t, !exists, dberr.ErrNoRecord, err)
		if exists {
			require.Equal(t, old.value, string(got))
			delete(m.records, key)
		}
	case 8:
		var oval []byte
		if exists {
			oval = []byte(old.value)
		}
		require.NoError(t, d.CAS(nil, k, oval, []byte(value), xt))
		require.ErrorIs(t, d.CAS(nil, k, []byte("other"), []byte("never"), xt), dberr.ErrConflict)
		m.set(key, value, xt)
	case 9:
		m.clock.advance(int64(rnd.IntN(3)))
	case 10:
		modelBulk(t, rnd, d, m)
	case 11:
		if rnd.IntN(20) == 0 {
			require.NoError(t, d.Clear(nil))
			clear(m.records)
		}
	}
}

func requireUnless(t *testing.T, refused bool, want, err error) {
	t.Helper()
	if !refused {
		want = nil
	}
	require.True(t, errors.Is(err, want) && (err == nil) == (want == nil), "want %v, got %v", want, err)
}

func modelBulk(t *testing.T, rnd *rand.Rand, d *DB, m *model) {
	var recs []Record
	var keys [][]byte
	hits := 0
	for range rnd.IntN(8) {
		key := strconv.Itoa(rnd.IntN(60))
		if rnd.IntN(2) == 0 {
			recs = append(recs, Record{Key: []byte(key), Value: []byte("bulk"), XT: record.Never})
			m.set(key, "bulk", record.Never)
		}
	}
	n, err := d.SetBulk(nil, recs, rnd.IntN(2) == 0)
	require.NoError(t, err)
	require.Equal(t, len(recs), n)
	for range rnd.IntN(8) {
		key := strconv.Itoa(rnd.IntN(60))
		keys = append(keys, []byte(key))
		if _, ok := m.get(key); ok {
			hits++
		}
		delete(m.records, key)
	}
	n, err = d.RemoveBulk(nil, keys, rnd.IntN(2) == 0)
	require.NoError(t, err)
	require.Equal(t, hits, n)
}

// requireCursorSees walks the database both ways.
func requireCursorSees(t *testing.T, d *DB, m *model) {
	t.Helper()
	cur := d.NewCursor()
	var got []string
	for err := cur.Jump(nil); err == nil; {
		var key, value []byte
		if key, value, _, err = cur.Get(nil, true); err == nil {
			require.Equal(t, m.records[string(key)].value, string(value))
			got = append(got, string(key))
		}
	}
	want := m.live()
	if d.expr.Params.RComp == expr.DecimalDesc {
		sort.Slice(want, func(i, j int) bool { return mustInt(want[i]) > mustInt(want[j]) })
	}
	if !d.expr.Kind.Ordered() {
		sort.Strings(got)
	}
	require.Equal(t, want, got)
	if !d.expr.Kind.Ordered() {
		require.ErrorIs(t, cur.StepBack(nil), dberr.ErrNotImplemented)
		return
	}
	for err := cur.JumpBack(nil); err == nil; err = cur.StepBack(nil) {
		key, _, _, getErr := cur.Get(nil, false)
		if getErr != nil { // only expired records in front
			break
		}
		if n := len(want); n > 0 && want[n-1] == string(key) {
			want = want[:n-1]
		}
	}
	require.Empty(t, want)
}

func mustInt(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}
