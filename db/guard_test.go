package db

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// Making a server read-only is what a planned takeover begins with: once that has been answered,
// and the other server has caught up, nothing may be acknowledged here any more.

func TestNothingIsStoredOnceGuarded(t *testing.T) {
	c := mustOpen(t, Options{LogDir: t.TempDir()}, "%", filepath.Join(t.TempDir(), "f.kct"))
	for i := range c.Len() {
		d := c.DB(i)
		require.NoError(t, c.SetGuarded(false))
		tx := begin(t, d)
		require.NoError(t, tx.DB().Set(nil, []byte("of the transaction"), []byte("x"), record.Never))
		waiting := map[string]func() error{
			"set":         func() error { return d.Set(nil, []byte("waits"), nil, record.Never) },
			"set_bulk":    func() error { _, err := d.SetBulk(nil, []Record{{Key: []byte("waits")}}, false); return err },
			"remove_bulk": func() error { _, err := d.RemoveBulk(nil, [][]byte{[]byte("waits")}, true); return err },
			"clear":       func() error { return d.Clear(nil) },
			"increment":   func() error { _, err := d.Increment(nil, []byte("waits"), 1, 0, record.Never); return err },
			"begin": func() error {
				tx, err := d.Begin(nil, false)
				if err == nil {
					err = tx.Commit(nil)
				}
				return err
			},
			"accept_bulk": func() error {
				return d.AcceptBulk(nil, [][]byte{[]byte("waits")}, func(_, _ []byte, _ int64, _ bool) record.Verdict { return record.Verdict{Op: record.Store} })
			},
		}
		answers := make(chan string)
		for name, op := range waiting {
			go func() { answers <- fmt.Sprint(name, ": ", op()) }()
		}
		require.NoError(t, c.SetGuarded(true))
		end := c.Log().Last()
		require.ErrorIs(t, tx.DB().Set(nil, []byte("of the transaction"), nil, record.Never), dberr.ErrReadOnly)
		require.ErrorIs(t, tx.Commit(nil), dberr.ErrReadOnly)
		for range waiting {
			require.Contains(t, <-answers, dberr.ErrReadOnly.Error())
		}
		require.Equal(t, end, c.Log().Last(), "updates were acknowledged after the server had become read-only")
		require.Empty(t, contents(t, d))
		require.ErrorIs(t, tx.Commit(nil), errEnded, "the transaction is aborted, or a master's updates would wait for it")
	}
}

// TestGuardWithASharedTransaction: nobody waits for the other, and what clients add to the
// transaction is refused.
func TestGuardWithASharedTransaction(t *testing.T) {
	c := mustOpen(t, Options{LogDir: t.TempDir()}, "%")
	d := c.DB(0)
	tx := begin(t, d)
	tx.Share()
	require.NoError(t, d.Set(nil, []byte("a"), nil, record.Never))
	require.NoError(t, c.SetGuarded(true))
	require.ErrorIs(t, d.Set(nil, []byte("b"), nil, record.Never), dberr.ErrReadOnly)
	followed := make(chan error)
	go func() {
		followed <- d.Replicate(nil, []ulog.Update{{SID: 9, Op: ulog.OpSet, Key: []byte("m"), Value: record.AppendXT(nil, record.MaxXT)}}, nil, nil)
	}()
	require.ErrorIs(t, tx.Commit(nil), dberr.ErrReadOnly)
	require.NoError(t, <-followed, "updates of a master go on")
	require.Equal(t, map[string]string{"m": ""}, contents(t, d))
	require.NoError(t, c.SetGuarded(false))
	require.NoError(t, d.Set(nil, []byte("b"), nil, record.Never))
}

// TestGuardUnderLoad: what is acknowledged at whatever moment has a stamp up to the log's end of
// the moment when SetGuarded returned.
func TestGuardUnderLoad(t *testing.T) {
	c := mustOpen(t, Options{LogDir: t.TempDir()}, "%", "*")
	var clients sync.WaitGroup
	var acknowledged atomic.Int64
	for i := range 8 {
		clients.Go(func() {
			for n := 0; ; n++ {
				err := c.DB(i%2).Set(nil, fmt.Append(nil, i, "/", n), nil, record.Never)
				if err != nil {
					require.ErrorIs(t, err, dberr.ErrReadOnly)
					return
				}
				acknowledged.Add(1)
			}
		})
	}
	for acknowledged.Load() < 1000 {
		require.NoError(t, c.SetGuarded(false))
	}
	require.NoError(t, c.SetGuarded(true))
	end, safe := c.Log().Last(), c.Log().Acked()
	require.Equal(t, end, safe)
	clients.Wait()
	require.Equal(t, end, c.Log().Last())
	require.Len(t, contents(t, c.DB(0)), int(acknowledged.Load())-len(contents(t, c.DB(1))))
}

// A member of a cluster tells its clients whom to ask instead.
func TestAGuardSaysWhy(t *testing.T) {
	c := mustOpen(t, Options{}, "%")
	why := errors.New("another server is the primary")
	c.OnRefusal(func() error { return why })
	d := c.DB(0)
	key := []byte("k")
	require.NoError(t, d.Set(nil, key, nil, record.Never))
	require.NoError(t, c.SetGuarded(true))
	require.Equal(t, why, d.Set(nil, key, nil, record.Never))
	require.Equal(t, why, d.Remove(nil, key))
	_, err := d.Begin(nil, false)
	require.Equal(t, why, err)
	_, err = d.Claim(nil, nil, key, key)
	require.Equal(t, why, err)
	why = nil
	require.Equal(t, dberr.ErrReadOnly, d.Set(nil, key, nil, record.Never))
	require.NoError(t, c.SetGuarded(false))
	require.NoError(t, d.Set(nil, key, nil, record.Never))
}
