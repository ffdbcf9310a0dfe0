package db

import (
	"errors"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

var errGone = errors.New("the right is gone")

// fakeRights are of a client whose rights change once.
type fakeRights struct {
	changed, gone, renewed atomic.Bool
}

func (r *fakeRights) Current() bool { return !r.changed.Load() || r.renewed.Load() }

func (r *fakeRights) Renew() error {
	if r.gone.Load() {
		return errGone
	}
	r.renewed.Store(true)
	return nil
}

// TestRightsAreAskedForWhenNothingIsLeftToWaitFor has updates wait for somebody's transaction, and
// takes their rights away meanwhile. What must hold: none of them is stored, and each tells why;
// where the rules have changed and the client still has its right all of them are.
func TestRightsAreAskedForWhenNothingIsLeftToWaitFor(t *testing.T) {
	updates := map[string]func(d *DB, p *Pending) error{
		"set":    func(d *DB, p *Pending) error { return d.Set(p, []byte("a"), []byte("new"), record.Never) },
		"append": func(d *DB, p *Pending) error { return d.Append(p, []byte("a"), []byte("new"), record.Never) },
		"remove": func(d *DB, p *Pending) error { return d.Remove(p, []byte("a")) },
		"clear":  func(d *DB, p *Pending) error { return d.Clear(p) },
		"seize": func(d *DB, p *Pending) error {
			_, _, err := d.Seize(p, nil, []byte("a"))
			return err
		},
		"set bulk": func(d *DB, p *Pending) error {
			_, err := d.SetBulk(p, []Record{{Key: []byte("a"), Value: []byte("new"), XT: record.Never}}, false)
			return err
		},
		"remove bulk": func(d *DB, p *Pending) error {
			_, err := d.RemoveBulk(p, [][]byte{[]byte("a")}, true)
			return err
		},
		"accept": func(d *DB, p *Pending) error {
			_, err := d.Accept(p, []byte("a"), func(_, _ []byte, _ int64, _ bool) record.Verdict { return record.Verdict{Op: record.Discard} })
			return err
		},
		"accept bulk": func(d *DB, p *Pending) error {
			return d.AcceptBulk(p, [][]byte{[]byte("a")}, func(_, _ []byte, _ int64, _ bool) record.Verdict { return record.Verdict{Op: record.Discard} })
		},
	}
	for name, update := range updates {
		for _, gone := range []bool{true, false} {
			d := mustOpen(t, Options{}, filepath.Join(t.TempDir(), "a.kct")).DB(0)
			require.NoError(t, d.Set(nil, []byte("a"), []byte("old"), record.Never))
			tx, rights, done := begin(t, d), &fakeRights{}, make(chan error)
			go func() { done <- update(d, &Pending{Rights: rights}) }()
			rights.gone.Store(gone)
			rights.changed.Store(true)
			require.NoError(t, tx.Abort())
			err := <-done
			value, _, getErr := d.Get(nil, nil, []byte("a"))
			if gone {
				require.ErrorIs(t, err, errGone, name)
				require.NoError(t, getErr, name)
				require.Equal(t, "old", string(value), name)
				continue
			}
			require.NoError(t, err, name)
			require.NotEqual(t, "old", string(value), name)
		}
	}
}

// TestACommitAsksForRights takes the right away between the updates of a transaction and its
// commit. What must hold: it is aborted.
func TestACommitAsksForRights(t *testing.T) {
	d := mustOpen(t, Options{}, "%").DB(0)
	tx, rights := begin(t, d), &fakeRights{}
	p := &Pending{Rights: rights}
	require.NoError(t, tx.DB().Set(p, []byte("a"), []byte("new"), record.Never))
	rights.gone.Store(true)
	rights.changed.Store(true)
	require.ErrorIs(t, tx.Commit(p), errGone)
	_, _, err := d.Get(nil, nil, []byte("a"))
	require.ErrorIs(t, err, dberr.ErrNoRecord)
	require.NoError(t, d.Set(nil, []byte("a"), []byte("b"), record.Never), "nobody waits for the transaction")
}
