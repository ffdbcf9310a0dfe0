package db

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// begin begins a transaction that nothing delays.
func begin(t testing.TB, d *DB) *Transaction {
	t.Helper()
	tx, err := d.Begin(nil, false)
	require.NoError(t, err)
	return tx
}

// TestTransactionModel does random operations within transactions, a third of which are shared half
// way, and compares with a map: what the owner sees, what others see, and what is left.
func TestTransactionModel(t *testing.T) {
	for _, expr := range []string{":", "*", "%", "-", "+", "m.kch", "m.kct", "%#rcomp=decdesc"} {
		t.Run(expr, func(t *testing.T) {
			if expr[0] == 'm' {
				expr = filepath.Join(t.TempDir(), expr)
			}
			clk := newClock()
			c := mustOpen(t, Options{Now: clk.now, CheckpointSize: 8 << 10}, expr)
			rnd := rand.New(rand.NewPCG(1, 2))
			m := &model{map[string]modelRecord{}, clk}
			for range 60 {
				runTransaction(t, rnd, c.DB(0), m)
			}
		})
	}
}

func runTransaction(t *testing.T, rnd *rand.Rand, d *DB, m *model) {
	before := maps.Clone(m.records)
	tx := begin(t, d)
	work := tx.DB()
	for step := range 30 {
		if step == 15 && rnd.IntN(3) == 0 {
			tx.Share()
			work = d
		}
		key := strconv.Itoa(rnd.IntN(40))
		modelStep(t, rnd, work, m, key)
		if rnd.IntN(60) == 0 {
			require.NoError(t, work.Clear(nil))
			clear(m.records)
		}
		if !tx.shared.Load() {
			requireValue(t, d, before, m.clock, key)
		}
	}
	requireCursorSees(t, work, m)
	if rnd.IntN(2) == 0 {
		require.NoError(t, tx.Commit(nil))
	} else {
		require.NoError(t, tx.Abort())
		m.records = before
	}
	require.ErrorIs(t, tx.Abort(), errEnded)
	requireCursorSees(t, d, m)
}

// requireValue checks one record of the database as others see it.
func requireValue(t *testing.T, d *DB, records map[string]modelRecord, clk *clock, key string) {
	t.Helper()
	want, ok := (&model{records, clk}).get(key)
	got, _, err := d.Get(nil, nil, []byte(key))
	if !ok {
		require.ErrorIs(t, err, dberr.ErrNoRecord)
		return
	}
	require.NoError(t, err)
	require.Equal(t, want.value, string(got))
}

func TestUpdatesOfOthersWaitForTheOwner(t *testing.T) {
	d := mustOpen(t, Options{}, "%").DB(0)
	for name, update := range map[string]func() error{
		"set": func() error { return d.Set(nil, []byte("k"), []byte("other"), record.Never) },
		"set_bulk": func() error {
			_, err := d.SetBulk(nil, []Record{{Key: []byte("k"), XT: record.Never}}, true)
			return err
		},
		"clear":     func() error { return d.Clear(nil) },
		"replicate": func() error { return d.Replicate(nil, []ulog.Update{{Op: ulog.OpRemove, Key: []byte("k")}}, nil, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			tx := begin(t, d)
			require.NoError(t, tx.DB().Set(nil, []byte("k"), []byte("mine"), record.Never))
			done := make(chan error, 1)
			go func() { done <- update() }()
			select {
			case <-done:
				t.Fatal("did not wait")
			case <-time.After(20 * time.Millisecond):
			}
			require.NoError(t, tx.Commit(nil))
			require.NoError(t, <-done)
			require.NoError(t, d.Clear(nil))
		})
	}
}

func TestASharedTransactionTakesUpdatesOfAllButTheMaster(t *testing.T) {
	d := mustOpen(t, Options{}, ":").DB(0)
	tx := begin(t, d)
	tx.Share()
	require.Same(t, tx, d.Transaction())
	require.NoError(t, d.Set(nil, []byte("client"), []byte("v"), record.Never))
	replicated := make(chan error, 1)
	value := append(record.AppendXT(nil, record.MaxXT), "v"...)
	go func() {
		replicated <- d.Replicate(nil, []ulog.Update{{Op: ulog.OpSet, Key: []byte("master"), Value: value}}, nil, nil)
	}()
	select {
	case <-replicated:
		t.Fatal("did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	_, _, err := d.Get(nil, nil, []byte("client"))
	require.NoError(t, err)
	require.NoError(t, tx.Abort())
	require.NoError(t, <-replicated)
	require.Equal(t, map[string]string{"master": "v"}, contents(t, d))
	require.Nil(t, d.Transaction())
}

// A process that is killed within a transaction leaves nothing of it, one killed after the commit
// leaves all.
func TestKilledTransaction(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			dir := t.TempDir()
			c := mustOpen(t, Options{CheckpointSize: 1 << 10}, filepath.Join(dir, "a.kct"))
			d := c.DB(0)
			require.NoError(t, d.Set(nil, []byte("k0"), []byte("old"), record.Never))
			tx := begin(t, d)
			work := tx.DB()
			if shared {
				tx.Share()
				work = d
			}
			for i := range 200 {
				require.NoError(t, work.Set(nil, []byte(fmt.Sprint("k", i)), []byte("new"), record.Never))
			}
			require.Equal(t, map[string]string{"k0": "old"}, afterKill(t, dir))
			require.NoError(t, tx.Commit(nil))
			require.Len(t, afterKill(t, dir), 200)
		})
	}
}

// afterKill returns what a database has when it is opened as kill -9 would leave it now.
func afterKill(t *testing.T, dir string) map[string]string {
	t.Helper()
	c, err := Open([]string{filepath.Join(image(t, dir), "a.kct")}, Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	return contents(t, c.DB(0))
}

func TestTransactionsOneAfterTheOther(t *testing.T) {
	d := mustOpen(t, Options{}, ":").DB(0)
	first := begin(t, d)
	stop := make(chan struct{})
	close(stop)
	_, err := d.Begin(stop, false)
	require.ErrorIs(t, err, dberr.ErrInterrupted)
	began := make(chan *Transaction)
	go func() {
		tx, _ := d.Begin(nil, true)
		began <- tx
	}()
	require.NoError(t, first.Commit(nil))
	require.NoError(t, (<-began).Commit(nil))
}

func TestWhereThereAreNoTransactions(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, Options{}, filepath.Join(dir, "a.kcx"), ":")
	_, err := c.DB(0).Begin(nil, false)
	require.ErrorIs(t, err, dberr.ErrNoTransaction)
	tx := begin(t, c.DB(1))
	require.NoError(t, c.Close())
	require.ErrorIs(t, tx.Commit(nil), errEnded, "closing has aborted it")
}

// Increments of many clients and of transactions add up: no transaction commits on top of an update
// that it has not seen.
func TestTransactionsAndClientsAddUp(t *testing.T) {
	d := mustOpen(t, Options{}, "%").DB(0)
	const clients, each = 4, 200
	errs := make(chan error, 2*clients)
	for range clients {
		go func() {
			errs <- repeat(each, func() error { _, err := d.Increment(nil, []byte("n"), 1, 0, record.Never); return err })
		}()
		go func() {
			errs <- repeat(each, func() error {
				tx, err := d.Begin(nil, false)
				if err != nil {
					return err
				}
				if _, err := tx.DB().Increment(nil, []byte("n"), 1, 0, record.Never); err != nil {
					return err
				}
				return tx.Commit(nil)
			})
		}()
	}
	for range 2 * clients {
		require.NoError(t, <-errs)
	}
	n, err := d.Increment(nil, []byte("n"), 0, 0, record.Never)
	require.NoError(t, err)
	require.EqualValues(t, 2*clients*each, n)
}

func repeat(n int, do func() error) error {
	for range n {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}
