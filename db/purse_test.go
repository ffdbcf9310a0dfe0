package db

import (
	"bytes"
	"errors"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// purse is memory of which there is so much.
type purse struct{ left, most, held int }

var errEmpty = errors.New("there is no memory")

func (p *purse) Hold(n int) error {
	if n > p.left {
		return errEmpty
	}
	p.left -= n
	p.held += n
	p.most = max(p.most, p.held)
	return nil
}

func (p *purse) LetGo(n int) { p.left, p.held = p.left+n, p.held-n }

const largeSize = 3 << 20

// inAllStores does something with a database of each kind that has large records.
func inAllStores(t *testing.T, do func(t *testing.T, d *DB)) {
	for _, expr := range []string{"*", "%", "-", ":", "FILE", "FILE in the overlay", "%#rcomp=dec", "lww"} {
		t.Run(expr, func(t *testing.T) {
			path := expr
			o := Options{}
			switch expr {
			case "FILE", "FILE in the overlay":
				path = t.TempDir() + "/a.kct"
			case "lww":
				path = t.TempDir() + "/a.kct#lww=true"
			}
			c := mustOpen(t, o, path)
			d := c.DB(0)
			require.NoError(t, d.Set(nil, []byte("large"), bytes.Repeat([]byte("x"), largeSize), 1000))
			require.NoError(t, d.Set(nil, []byte("other"), bytes.Repeat([]byte("y"), largeSize), record.Never))
			require.NoError(t, d.Set(nil, []byte("small"), []byte("x"), record.Never))
			if expr == "FILE" {
				require.NoError(t, d.Synchronize(false, nil))
			}
			d.Watch(WatchOptions{Uniques: true, Claims: true})
			do(t, d)
		})
	}
}

// cursorOn returns a cursor on a record.
func cursorOn(t *testing.T, d *DB, key []byte) *Cursor {
	t.Helper()
	c := d.NewCursor()
	require.NoError(t, c.JumpKey(nil, key))
	return c
}

// allocatedBy returns the bytes that do allocates.
func allocatedBy(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Values are not copied when there is no memory for them, and nothing is changed then.
func TestLargeValuesAreAskedForBeforeTheyAreCopied(t *testing.T) {
	inAllStores(t, func(t *testing.T, d *DB) {
		p := &Pending{Purse: &purse{left: 1 << 20}}
		key := []byte("large")
		visit := func([]byte, []byte, int64, bool) record.Verdict { return record.Verdict{Op: record.Discard} }
		for name, do := range map[string]func() error{
			"Get":        func() error { _, _, err := d.Get(p, nil, key); return err },
			"Seize":      func() error { _, _, err := d.Seize(p, nil, key); return err },
			"CAS":        func() error { return d.CAS(p, key, []byte("x"), nil, record.Never) },
			"Append":     func() error { return d.Append(p, key, []byte("x"), record.Never) },
			"GetBulk":    func() error { return d.GetBulk(p, [][]byte{key}, false, func(int, []byte, int64) {}) },
			"Accept":     func() error { _, err := d.Accept(p, key, visit); return err },
			"AcceptBulk": func() error { return d.AcceptBulk(p, [][]byte{key}, visit) },
			"Set":        func() error { return d.Set(p, key, make([]byte, largeSize), record.Never) },
			"SetBulk": func() error {
				_, err := d.SetBulk(p, []Record{{Key: key, Value: make([]byte, largeSize)}}, true)
				return err
			},
			"Iterate": func() error { return d.Iterate(nil, p, visit, func() bool { return true }) },
			"Walk": func() error {
				return d.Walk(nil, p, func([]byte, []byte, int64) bool { return true })
			},
			"Cursor.Get":   func() error { _, _, _, err := cursorOn(t, d, key).Get(p, false); return err },
			"Cursor.Seize": func() error { _, _, _, err := cursorOn(t, d, key).Seize(p); return err },
		} {
			require.ErrorIs(t, do(), errEmpty, name)
		}
		if d.expr.Kind.Ordered() && d.Bytewise() {
			_, err := d.Claim(nil, p, []byte("l"), nil)
			require.ErrorIs(t, err, errEmpty)
		}
		value, _, err := d.Get(nil, nil, key)
		require.NoError(t, err)
		require.Equal(t, bytes.Repeat([]byte("x"), largeSize), value)
	})
}

// What does not need a value does not copy it.
func TestLargeValuesThatNobodyNeedsAreNotCopied(t *testing.T) {
	inAllStores(t, func(t *testing.T, d *DB) {
		p := &Pending{Purse: &purse{}}
		key := []byte("large")
		_, want, err := d.Get(nil, nil, key)
		require.NoError(t, err)
		size, xt, err := d.Check(p, key)
		require.NoError(t, err)
		require.Equal(t, largeSize, size)
		require.Equal(t, want, xt)
		require.ErrorIs(t, d.Add(p, key, []byte("x"), record.Never), dberr.ErrDuplicate)
		c := cursorOn(t, d, key)
		got, err := c.GetKey(p, true)
		require.NoError(t, err)
		require.Equal(t, "large", string(got))
		c = cursorOn(t, d, key)
		require.NoError(t, c.SetValue(p, []byte("a"), record.Never, false))
		require.NoError(t, d.Replace(p, []byte("other"), []byte("b"), record.Never))
		require.NoError(t, d.Remove(p, key))
		require.ErrorIs(t, d.Remove(p, key), dberr.ErrNoRecord)
	})
}

// In a transaction the values are elsewhere.
func TestLargeValuesInATransaction(t *testing.T) {
	d := mustOpen(t, Options{}, "%").DB(0)
	tx, err := d.Begin(nil, false)
	require.NoError(t, err)
	d = tx.DB()
	require.NoError(t, d.Set(nil, []byte("large"), make([]byte, largeSize), 1000))
	p := &Pending{Purse: &purse{left: 1 << 20}}
	size, xt, err := d.Check(p, []byte("large"))
	require.NoError(t, err)
	require.Equal(t, largeSize, size)
	require.Less(t, xt, int64(record.MaxXT))
	_, _, err = d.Get(p, nil, []byte("large"))
	require.ErrorIs(t, err, errEmpty)
	require.NoError(t, tx.Commit(nil))
}

// A bulk takes the memory of its largest record at most, and what is read by turns is given back.
func TestMemoryOfValuesIsGivenBack(t *testing.T) {
	d := mustOpen(t, Options{}, "%").DB(0)
	var keys [][]byte
	for i := range 50 {
		key := []byte{'k', byte(i)}
		keys = append(keys, key)
		require.NoError(t, d.Set(nil, key, make([]byte, 100_000+i), record.Never))
	}
	w := &purse{left: 1 << 20}
	p := &Pending{Purse: w}
	require.NoError(t, d.GetBulk(p, keys, false, func(int, []byte, int64) {}))
	require.Less(t, w.most, 300_000)
	require.NoError(t, d.Walk(nil, p, func([]byte, []byte, int64) bool { return true }))
	require.NoError(t, d.Iterate(nil, p, func(_, value []byte, _ int64, _ bool) record.Verdict {
		return record.Verdict{Op: record.Store, Value: value}
	}, func() bool { return true }))
	require.Less(t, w.held, 300_000)
}

// An atomic bulk of large values keeps each of them once.
func TestABulkOfLargeValuesIsNotCopiedOverAndOver(t *testing.T) {
	d := mustOpen(t, Options{}, "%").DB(0)
	recs := make([]Record, 100)
	for i := range recs {
		recs[i] = Record{Key: []byte{byte(i)}, Value: make([]byte, 300_000)}
	}
	allocated := allocatedBy(func() {
		_, err := d.SetBulk(nil, recs, true)
		require.NoError(t, err)
	})
	require.Less(t, allocated, uint64(100_000_000), "30 MB are stored")
}
