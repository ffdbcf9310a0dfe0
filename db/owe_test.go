package db

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/checksum"
	"gotycoon/db/dberr"
	"gotycoon/db/keymatch"
	"gotycoon/db/pages"
	"gotycoon/db/record"
	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
)

// unsafeRecord returns a database with -oas in which the records "order 1" and "order 2" are
// visible while the fsync of their log, which will fail, goes on until release is called. "before"
// is safe. written tells what the writer was told.
func unsafeRecord(t *testing.T, expr string) (d *DB, release func(), written chan error) {
	t.Helper()
	fs := faultfs.New(vfs.OS{})
	var c *Catalog
	for shared := true; shared; { // until chance gives "before" a stripe that the orders do not have
		var err error
		c, err = Open([]string{expr}, Options{LogDir: t.TempDir(), SyncEach: true, FS: fs})
		require.NoError(t, err)
		d = c.DB(0)
		before := d.stripes.of([]byte("before"))
		if shared = before == d.stripes.of([]byte("order 1")) || before == d.stripes.of([]byte("order 2")); shared {
			require.NoError(t, c.Close())
		}
	}
	t.Cleanup(func() { require.Error(t, c.Close(), "the log has failed") })
	d.Watch(WatchOptions{Claims: true, Uniques: true})
	require.NoError(t, d.Set(nil, []byte("before"), []byte("safe"), record.Never))
	syncing, goOn := make(chan struct{}, 8), make(chan struct{})
	fs.OnSync(func() {
		syncing <- struct{}{}
		<-goOn
	})
	release = sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release) // also when the test fails: closing waits for the log
	fs.FailSync(1, errors.New("input/output error"))
	written = make(chan error, 1)
	go func() {
		recs := []Record{{Key: []byte("order 1"), Value: []byte("paid"), XT: record.Never}, {Key: []byte("order 2"), Value: []byte("paid"), XT: record.Never}}
		_, err := d.SetBulk(nil, recs, true)
		written <- err
	}()
	<-syncing
	return d, release, written
}

// TestNoReplyTellsWhatIsNotSafe reads a record in all ways while its update is being synced, which
// fails. What must hold: what was read is owed, so that no reply with it leaves, neither before nor
// after the failure; what has nothing to do with the record is not.
func TestNoReplyTellsWhatIsNotSafe(t *testing.T) {
	order := []byte("order 1")
	visit := func([]byte, []byte, int64, bool) record.Verdict { return record.Verdict{} }
	see := func(int, []byte, int64) {}
	for _, tc := range []struct {
		name string
		op   func(d *DB, p *Pending) error
	}{
		{"get", func(d *DB, p *Pending) error { _, _, err := d.Get(p, nil, order); return err }},
		{"check", func(d *DB, p *Pending) error { _, _, err := d.Check(p, order); return err }},
		{"get_bulk", func(d *DB, p *Pending) error { return d.GetBulk(p, [][]byte{[]byte("before"), order}, false, see) }},
		{"atomic get_bulk", func(d *DB, p *Pending) error { return d.GetBulk(p, [][]byte{order}, true, see) }},
		{"add", func(d *DB, p *Pending) error { return d.Add(p, order, nil, record.Never) }},
		{"cas", func(d *DB, p *Pending) error { return d.CAS(p, order, nil, nil, record.Never) }},
		{"increment", func(d *DB, p *Pending) error { _, err := d.Increment(p, order, 1, 0, record.Never); return err }},
		{"try to increment", func(d *DB, p *Pending) error {
			_, err := d.Increment(p, order, 0, record.OrigTry, record.Never)
			return err
		}},
		{"accept", func(d *DB, p *Pending) error { _, err := d.Accept(p, order, visit); return err }},
		{"accept_bulk", func(d *DB, p *Pending) error { return d.AcceptBulk(p, [][]byte{order}, visit) }},
		{"version", func(d *DB, p *Pending) error { _, err := d.Accept(p, order, visit); return err }},
		{"iterate", func(d *DB, p *Pending) error { return d.Iterate(nil, p, visit, func() bool { return true }) }},
		{"walk", func(d *DB, p *Pending) error { return d.Walk(nil, p, func(_, _ []byte, _ int64) bool { return true }) }},
		{"count", func(d *DB, p *Pending) error { _, err := d.Count(p); return err }},
		{"status", func(d *DB, p *Pending) error { _, err := d.Status(p); return err }},
		{"match_prefix", func(d *DB, p *Pending) error {
			_, err := keymatch.MatchPrefix(d, nil, p, []byte("order"), -1, nil)
			return err
		}},
		{"match_regex", func(d *DB, p *Pending) error { _, err := keymatch.MatchRegex(d, nil, p, "order", -1, nil); return err }},
		{"match_similar", func(d *DB, p *Pending) error {
			_, err := keymatch.MatchSimilar(d, nil, p, order, 1, false, -1, nil)
			return err
		}},
		{"page", func(d *DB, p *Pending) error {
			_, err := pages.Of(d, p, pages.Options{Records: 5, Examine: 5})
			return err
		}},
		{"checksum", func(d *DB, p *Pending) error {
			_, err := checksum.Sum(d, p, []checksum.Range{{}}, checksum.Options{})
			return err
		}},
		{"digests", func(d *DB, p *Pending) error {
			_, _, err := checksum.Digests(d, p, []checksum.Range{{}}, checksum.Options{}, 5)
			return err
		}},
		{"claim", func(d *DB, p *Pending) error { _, err := d.Claim(nil, p, []byte("order"), nil); return err }},
		{"no claim", func(d *DB, p *Pending) error { _, err := d.Claim(nil, p, []byte("delivery"), nil); return err }},
		{"jump", func(d *DB, p *Pending) error { return d.NewCursor().Jump(p) }},
		{"jump to a key", func(d *DB, p *Pending) error { return d.NewCursor().JumpKey(p, order) }},
		{"jump back", func(d *DB, p *Pending) error { return d.NewCursor().JumpBack(p) }},
		{"jump back to a key", func(d *DB, p *Pending) error { return d.NewCursor().JumpBackKey(p, order) }},
		{"step", onOrder(func(c *Cursor, p *Pending) error { return c.Step(p) })},
		{"step back", onOrder(func(c *Cursor, p *Pending) error { return c.StepBack(p) })},
		{"cur_get", onOrder(func(c *Cursor, p *Pending) error { _, _, _, err := c.Get(p, true); return err })},
		{"cur_get_key", onOrder(func(c *Cursor, p *Pending) error { _, err := c.GetKey(p, false); return err })},
		{"cur_get_value", onOrder(func(c *Cursor, p *Pending) error { _, _, _, err := c.Get(p, false); return err })},
		{"visit by cursor", onOrder(func(c *Cursor, p *Pending) error { return c.Accept(p, visit, true) })},
		{"in a transaction", func(d *DB, p *Pending) error {
			tx, err := d.Begin(nil, false)
			if err != nil {
				return err
			}
			defer tx.Abort()
			_, _, err = tx.DB().Get(p, nil, order)
			return err
		}},
		{"joining a transaction", func(d *DB, p *Pending) error {
			tx, err := d.Begin(nil, false)
			if err != nil {
				return err
			}
			tx.Share()
			defer tx.Abort()
			return d.Append(p, order, []byte("!"), record.Never)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, release, written := unsafeRecord(t, "%")
			var owed Pending
			_ = tc.op(d, &owed)
			replied := make(chan error)
			go func() { replied <- owed.Wait() }()
			select {
			case err := <-replied:
				require.Fail(t, "a reply left before what it tells was safe", "%v", err)
			case <-time.After(20 * time.Millisecond): // what must not happen has no condition to wait for
			}
			release()
			require.Error(t, <-written)
			require.Error(t, <-replied)
			_ = tc.op(d, &owed)
			require.Error(t, owed.Wait(), "what never was safe is told after the log has failed")
		})
	}
}

// onOrder is an operation of a cursor that is on "order 1", which was owed for before.
func onOrder(op func(c *Cursor, p *Pending) error) func(d *DB, p *Pending) error {
	return func(d *DB, p *Pending) error {
		var before Pending
		c := d.NewCursor()
		if err := c.JumpKey(&before, []byte("order 1")); err != nil {
			return err
		}
		return op(c, p)
	}
}

func TestReadersOfOtherKeysDoNotWait(t *testing.T) {
	d, release, written := unsafeRecord(t, "%")
	var owed Pending
	for i := 0; ; i++ { // a key that shares no stripe with those that are being written
		key := fmt.Append(nil, i)
		if d.stripes.of(key).stamp() != 0 {
			continue
		}
		_, _, err := d.Get(&owed, nil, key)
		require.ErrorIs(t, err, dberr.ErrNoRecord)
		require.ErrorIs(t, d.Replace(&owed, key, nil, record.Never), dberr.ErrNoRecord)
		break
	}
	require.NoError(t, owed.Wait())
	release()
	require.Error(t, <-written)
	require.NoError(t, d.GetBulk(nil, [][]byte{[]byte("before")}, false, func(int, []byte, int64) {}), "what was safe is still told")
}

// TestReadersWithoutPendingWait: who gives no Pending is told nothing before it is safe.
func TestReadersWithoutPendingWait(t *testing.T) {
	d, release, written := unsafeRecord(t, "%")
	read := make(chan error)
	go func() {
		_, _, err := d.Get(nil, nil, []byte("order 1"))
		read <- err
	}()
	go func() { read <- d.Add(nil, []byte("order 1"), nil, record.Never) }()
	release()
	require.Error(t, <-written)
	for range 2 {
		require.ErrorContains(t, <-read, "input/output error")
	}
}

// TestReaderWritesTheLog: in the default mode nothing is told before it is written either, which
// kill -9 would take.
func TestReaderWritesTheLog(t *testing.T) {
	c := mustOpen(t, Options{LogDir: t.TempDir(), SyncInterval: time.Hour}, "%") // else a sync may come first
	d := c.DB(0)
	var writer, reader Pending // the writer's connection has pipelined requests, and has not waited yet
	require.NoError(t, d.Set(&writer, []byte("order 1"), []byte("paid"), record.Never))
	require.Less(t, c.Log().Acked(), c.Log().Last())
	_, _, err := d.Get(&reader, nil, []byte("order 1"))
	require.NoError(t, err)
	require.NoError(t, reader.Wait())
	require.Equal(t, c.Log().Last(), c.Log().Acked())
}

// TestWhatIsWideIsOwedByAll: a clear, and the commit of a transaction, concern every key.
func TestWhatIsWideIsOwedByAll(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, d *DB, p *Pending){
		"clear": func(t *testing.T, d *DB, p *Pending) { require.NoError(t, d.Clear(p)) },
		"transaction": func(t *testing.T, d *DB, p *Pending) {
			tx := begin(t, d)
			require.NoError(t, tx.DB().Remove(nil, []byte("a")))
			require.NoError(t, tx.Commit(p))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustOpen(t, Options{LogDir: t.TempDir()}, "%")
			d := c.DB(0)
			require.NoError(t, d.Set(nil, []byte("a"), nil, record.Never))
			var writer, reader Pending
			change(t, d, &writer)
			_, _, err := d.Get(&reader, nil, []byte("a"))
			require.ErrorIs(t, err, dberr.ErrNoRecord)
			require.Equal(t, c.Log().Last(), reader.Stamp(c.Log()))
		})
	}
}
