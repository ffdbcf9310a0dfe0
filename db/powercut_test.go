package db

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/expr"
	"gotycoon/db/record"
	"gotycoon/internal/vfs/crashfs"
	"gotycoon/ulog"
)

// TestPowerCut cuts the power at random moments while databases are written, checkpointed and
// recovered. What must hold after each cut:
//
//   - every database is as it was after some operation of its worker, no operation half done, and with -oas not
//     before the last acknowledged one (otherwise not before the last hard synchronize);
//   - no file is ahead of its log, or taken for one that somebody has put in its place;
//   - the count is right, everything opens, and the log's stamps go on growing, though the clock is set back at restarts.
//
// GOTYCOON_POWERCUTS sets the number of cuts per mode.
func TestPowerCut(t *testing.T) {
	for _, tc := range []struct {
		name   string
		shared bool
		oas    bool
	}{
		{"shared log, oas", true, true},
		{"private logs, oas", false, true},
		{"shared log", true, false},
		{"private logs", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := &powerCut{t: t, shared: tc.shared, oas: tc.oas, rnd: rand.New(rand.NewPCG(1, uint64(len(tc.name)))), dir: t.TempDir()}
			for i := range 3 {
				p.workers = append(p.workers, &worker{db: i, states: []map[string]string{{}}})
			}
			for range powerCuts() {
				p.round()
			}
		})
	}
}

// wrongClock returns a clock as a machine has it after a restart: right, or wrong by up to an hour.
func wrongClock(rnd *rand.Rand) func() time.Time {
	off := []time.Duration{0, time.Hour, -time.Second, -time.Hour}[rnd.IntN(4)]
	return func() time.Time { return time.Now().Add(off) }
}

func powerCuts() int {
	if n, err := strconv.Atoi(os.Getenv("GOTYCOON_POWERCUTS")); err == nil {
		return n
	}
	return 4
}

type powerCut struct {
	t           *testing.T
	shared, oas bool
	rnd         *rand.Rand
	dir         string
	workers     []*worker
	last        ulog.Stamp // newest stamp acknowledged
}

// worker is the only one to write a database. states[i] is what the database holds after i
// operations; safe is the number of operations that must survive.
type worker struct {
	db     int
	states []map[string]string
	safe   int
}

func (p *powerCut) exprs() []string {
	return []string{filepath.Join(p.dir, "a.kct"), filepath.Join(p.dir, "b.kch#lww=true"), filepath.Join(p.dir, "c.kct#ktopts=p")}
}

// round opens the databases, checks them, works until the power goes, and makes a possible state of
// the disk the next directory.
func (p *powerCut) round() {
	fs, err := crashfs.New(p.dir)
	require.NoError(p.t, err)
	var said bytes.Buffer
	o := Options{FS: fs, SyncEach: p.oas, CheckpointSize: 4 << 10, LogLimit: 8 << 10, ahead: 150, Now: wrongClock(p.rnd),
		Logger: slog.New(slog.NewTextHandler(&said, nil))}
	if p.shared {
		o.LogDir = filepath.Join(p.dir, "ulog")
	}
	if p.rnd.IntN(4) == 0 {
		fs.CutAfter(1 + p.rnd.IntN(20)) // also while opening
	}
	c, err := Open(p.exprs(), o)
	if err != nil {
		require.ErrorIs(p.t, err, crashfs.ErrPowerCut)
		p.crash(fs, nil)
		return
	}
	require.NotContains(p.t, said.String(), "ends before", "a file is ahead of its log")
	require.NotContains(p.t, said.String(), "opened as it is")
	for _, w := range p.workers {
		w.check(p.t, c.DB(w.db))
	}
	if p.shared && p.oas {
		require.GreaterOrEqual(p.t, c.Log().Last(), p.last, "stamps must grow")
	}
	fs.CutAfter(1 + p.rnd.IntN(600))
	p.work(c)
	p.crash(fs, c)
}

// work lets every worker write its database until the power goes.
func (p *powerCut) work(c *Catalog) {
	var all sync.WaitGroup
	for _, w := range p.workers {
		rnd := rand.New(rand.NewPCG(p.rnd.Uint64(), 0))
		all.Go(func() {
			for w.operate(rnd, c.DB(w.db), p.oas) == nil {
			}
		})
	}
	all.Wait()
	if p.shared && p.oas {
		p.last = ulog.Stamp(0)
		for _, w := range p.workers {
			p.last = max(p.last, c.DB(w.db).file.Meta().Stamp)
		}
	}
}

// operate does one operation and notes what the database holds if it happened.
func (w *worker) operate(rnd *rand.Rand, d *DB, oas bool) error {
	next := maps.Clone(w.states[len(w.states)-1])
	key, value := strconv.Itoa(rnd.IntN(100)), fmt.Sprintf("%0*d", rnd.IntN(200), len(w.states))
	var run func() error
	switch n := rnd.IntN(100); {
	case n < 50:
		next[key] = value
		run = func() error { return d.Set(nil, []byte(key), []byte(value), record.Never) }
	case n < 65:
		delete(next, key)
		run = func() error { _, err := d.RemoveBulk(nil, [][]byte{[]byte(key)}, false); return err }
	case n < 90:
		var recs []Record
		for i := range 8 {
			k := strconv.Itoa(i * 10)
			next[k] = value
			recs = append(recs, Record{Key: []byte(k), Value: []byte(value), XT: record.Never})
		}
		run = func() error { _, err := d.SetBulk(nil, recs, true); return err }
	case n < 92:
		clear(next)
		run = func() error { return d.Clear(nil) }
	case n < 95:
		run = func() error { return frozenAs(d, next) }
		oas = true // and here
	default:
		run = func() error { return d.Synchronize(true, nil) }
		oas = true // everything before it is safe afterwards
	}
	w.states = append(w.states, next)
	err := run()
	if err == nil && oas {
		w.safe = len(w.states) - 1
	}
	return err
}

// frozenAs freezes a database that nobody else writes, and compares it with what it must hold.
func frozenAs(d *DB, want map[string]string) error {
	f, err := d.Freeze()
	if err != nil {
		return err
	}
	got := map[string]string{}
	err = f.Scan(func(key, stored []byte) error {
		_, value, _ := d.Split(stored)
		got[string(key)] = string(value)
		return nil
	})
	if err == nil && !maps.Equal(got, want) {
		panic(fmt.Sprintf("frozen is %v, not %v", got, want))
	}
	return errors.Join(err, f.Close())
}

// check finds the operation after which the database was as it is now, and goes on from there.
func (w *worker) check(t *testing.T, d *DB) {
	t.Helper()
	got := contents(t, d)
	for i := len(w.states) - 1; i >= w.safe; i-- {
		if maps.Equal(got, w.states[i]) {
			w.states, w.safe = []map[string]string{got}, 0
			return
		}
	}
	require.Failf(t, "a state that never was", "database %d holds %v; acknowledged was %v, last tried %v",
		w.db, got, w.states[w.safe], w.states[len(w.states)-1])
}

// crash makes the next directory. A database file is copied while a last checkpoint may be writing
// it: every commit before that one was synced, and pages it writes are in no use by the commit
// before.
func (p *powerCut) crash(fs *crashfs.FS, c *Catalog) {
	fs.Cut()
	next := p.t.TempDir()
	require.NoError(p.t, fs.Crash(p.rnd, next))
	for _, raw := range p.exprs() {
		e, err := expr.Parse(raw)
		require.NoError(p.t, err)
		require.NoError(p.t, copyFile(e.Path, filepath.Join(next, filepath.Base(e.Path))))
	}
	if c != nil {
		c.stopBackground()
		abandon(c)
	}
	p.dir = next
}
