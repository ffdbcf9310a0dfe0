package db

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/record"
	"gotycoon/internal/vfs/crashfs"
	"gotycoon/internal/vfs/faultfs"
	"gotycoon/ulog"
)

// TestPowerCutOfAFollower kills a follower and cuts its power at random moments, while it applies
// what a master sends, clients write, checkpoints run and old segments are removed; the clock is
// set back at restarts. What must hold after each:
//
//   - a file holds exactly the updates that its position covers, and so does the log: all up to there, each once, and none behind;
//   - no position is before one that was safe: waited for with -oas, or remembered and synced.
//
// Afterwards the follower goes on from where it says that it is. GOTYCOON_POWERCUTS sets the number
// of cuts per mode.
func TestPowerCutOfAFollower(t *testing.T) {
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
			rnd, recalled := rand.New(rand.NewPCG(7, uint64(len(tc.name)))), 0
			for left, tries := powerCuts(), 0; left > 0 || recalled == 0 && tries < 10; left, tries = left-livesOfAFollower, tries+1 {
				if left <= 0 { // few cuts, and each of them came before the first position was safe
					left = powerCuts()
				}
				p := &followCut{t: t, shared: tc.shared, oas: tc.oas, rnd: rnd, dir: t.TempDir()}
				p.safe = make([]uint64, len(p.exprs()))
				p.removes = left%(2*livesOfAFollower) > livesOfAFollower
				for range min(left, livesOfAFollower) {
					p.life()
				}
				recalled += p.recalled
			}
			require.NotZero(t, recalled, "some life must have gone on from a position")
		})
	}
}

const (
	livesOfAFollower = 10 // until another one begins from nothing

	followedLog  = 7                         // of the master, in origins
	followedFrom = 1_500_000_000_000_000_000 // its stamps: this and the number of the update
	localPrefix  = "local "                  // keys that clients of the follower write
)

// errKilled is what a process gets that is killed, while the disk goes on.
var errKilled = errors.New("killed")

// followCut is a follower that lives through kills and power cuts. Positions are numbers of the
// master's updates.
type followCut struct {
	t           *testing.T
	shared, oas bool
	rnd         *rand.Rand
	dir         string
	master      []masterUpdate // [n-1] is the update number n
	said        bytes.Buffer   // by the process that runs

	at       []uint64 // up to where each database has everything
	recalled int      // databases that have come up with a position
	removes  bool     // segments of a shared log are removed

	mu   sync.Mutex // guards safe while databases are open
	safe []uint64   // what each must not fall back behind
}

// masterUpdate is an update for a database; one for a database that the follower has not only moves
// the position.
type masterUpdate struct {
	db         int
	op         ulog.Op
	key, value string
}

func (p *followCut) exprs() []string {
	exprs := []string{filepath.Join(p.dir, "a.kct"), filepath.Join(p.dir, "b.kch#lww=true"), filepath.Join(p.dir, "c.kct#ktopts=p")}
	if p.shared {
		exprs = append(exprs, ":")
	}
	return exprs
}

// life is a few processes, one after the other, and the power cut that ends the last of them.
func (p *followCut) life() {
	disk, err := crashfs.New(p.dir)
	require.NoError(p.t, err)
	kills := p.rnd.IntN(3)
	for i := range kills + 1 {
		fs := faultfs.New(disk)
		if p.rnd.IntN(4) == 0 && i == kills {
			disk.CutAfter(1 + p.rnd.IntN(20)) // also while opening
		}
		c, err := p.open(fs)
		if err != nil {
			require.ErrorIs(p.t, err, crashfs.ErrPowerCut, p.said.String())
			break
		}
		if i < kills {
			fs.FailChange(1+p.rnd.IntN(300), errKilled)
		} else {
			disk.CutAfter(1 + p.rnd.IntN(500))
		}
		p.work(c)
		c.stopBackground()
		abandon(c)
	}
	disk.Cut()
	next := p.t.TempDir()
	require.NoError(p.t, disk.Crash(p.rnd, next))
	for _, raw := range p.exprs()[:3] {
		e, err := expr.Parse(raw)
		require.NoError(p.t, err)
		require.NoError(p.t, copyFile(e.Path, filepath.Join(next, filepath.Base(e.Path))))
	}
	p.dir = next
}

// open opens the databases and checks them.
func (p *followCut) open(fs *faultfs.FS) (*Catalog, error) {
	p.said.Reset()
	o := Options{FS: fs, SyncEach: p.oas, CheckpointSize: 4 << 10, ahead: 100, LogLimit: 4 << 10, Now: wrongClock(p.rnd), Logger: slog.New(slog.NewTextHandler(&p.said, nil))}
	if p.shared {
		o.LogDir = filepath.Join(p.dir, "ulog")
	}
	c, err := Open(p.exprs(), o)
	if err != nil {
		return nil, err
	}
	require.NotContains(p.t, p.said.String(), "ends before", "a file is ahead of its log")
	require.NotContains(p.t, p.said.String(), "opened as it is")
	p.at = make([]uint64, c.Len())
	for i := range p.at {
		p.check(c.DB(i))
	}
	copy(p.safe, p.at) // what has come up is on the disk
	return c, nil
}

// check looks where a database is, and whether it and its log are just there.
func (p *followCut) check(d *DB) {
	i := int(d.index)
	if state := d.info.Remembered; state != nil {
		p.at[i] = binary.BigEndian.Uint64(state[8*i:])
		p.recalled++
	}
	at := p.at[i]
	require.GreaterOrEqual(p.t, at, p.safe[i], "%s has forgotten where it was", d.path())
	if d.file != nil {
		got := contents(p.t, d)
		maps.DeleteFunc(got, func(key, _ string) bool { return strings.HasPrefix(key, localPrefix) })
		require.Equal(p.t, p.contentsAt(i, at), got, "%s at position %d", d.path(), at)
	}
	have, gone := p.inLog(d)
	want := p.numbers(i, at)
	if have == nil {
		return // without power
	}
	if !p.shared || p.removes {
		want = p.kept(want, have, gone)
	}
	require.Equal(p.t, want, have, "the log of %s at position %d", d.path(), at)
}

// kept returns the numbers that a log must have where segments were removed: it ends with the last,
// unless it has none, or the segment with the last is gone. A power cut may have brought any of the
// segments back, also some in front of one that is gone.
func (p *followCut) kept(want, have []uint64, gone bool) []uint64 {
	if len(have) == 0 {
		return have
	}
	last := len(want) - 1
	return slices.DeleteFunc(want, func(n uint64) bool { return (gone || n != want[last]) && !slices.Contains(have, n) })
}

// contentsAt is what a database holds at a position.
func (p *followCut) contentsAt(db int, at uint64) map[string]string {
	holds := map[string]string{}
	for _, n := range p.numbers(db, at) {
		switch u := &p.master[n-1]; u.op {
		case ulog.OpSet:
			holds[u.key] = u.value
		case ulog.OpRemove:
			delete(holds, u.key)
		case ulog.OpClear:
			clear(holds)
		}
	}
	return holds
}

// numbers are those of a database's updates up to a position.
func (p *followCut) numbers(db int, at uint64) []uint64 {
	all := []uint64{}
	for n := range at {
		if p.master[n].db == db {
			all = append(all, n+1)
		}
	}
	return all
}

// inLog returns the numbers of the master's updates for a database in its log, and whether a segment
// behind the last of them is gone; nil when the power
// goes.
func (p *followCut) inLog(d *DB) (all []uint64, gone bool) {
	r, err := d.log.NewReader(0)
	if errors.Is(err, crashfs.ErrPowerCut) {
		return nil, false
	}
	require.NoError(p.t, err)
	defer r.Close()
	all = []uint64{}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, gone
		}
		if errors.Is(err, crashfs.ErrPowerCut) {
			return nil, false
		}
		if gap, ok := errors.AsType[*ulog.GapError](err); ok && gap.Short == 0 && !gap.Empty && (!p.shared || p.removes) { // see kept
			p.requireTaken(d, gap)
			r.SkipGap()
			gone = true
			continue
		}
		require.NoError(p.t, err)
		u, err := ulog.ParseMessage(e.Message)
		require.NoError(p.t, err)
		if u.DBID == d.index && e.Origin.Log == followedLog {
			all, gone = append(all, uint64(e.Origin.Stamp-followedFrom)), false
		}
	}
}

// requireTaken checks that a file has everything that was in segments that are gone.
func (p *followCut) requireTaken(d *DB, gap *ulog.GapError) {
	if d.file != nil {
		require.LessOrEqual(p.t, gap.To, d.file.Meta().Stamp, "%s lacks what was in removed segments", d.path())
	}
}

// work uses the databases until the power is gone, or the process.
func (p *followCut) work(c *Catalog) {
	var all sync.WaitGroup
	local, tidy := rand.New(rand.NewPCG(p.rnd.Uint64(), 1)), rand.New(rand.NewPCG(p.rnd.Uint64(), 2))
	all.Go(func() {
		for clientWrites(local, c) == nil {
		}
	})
	all.Go(func() {
		for p.tidy(tidy, c) == nil {
		}
	})
	if p.rnd.IntN(4) == 0 { // the master is not there
		all.Wait()
		return
	}
	f := following{followCut: p, c: c, noted: slices.Clone(p.at), owed: slices.Clone(p.at)}
	for f.step() == nil {
	}
	all.Wait()
	f.saving.Wait()
}

// clientWrites has a client of the follower update a record. Without power a value that goes ahead
// is refused: the next small one ends the log.
func clientWrites(rnd *rand.Rand, c *Catalog) error {
	key := localPrefix + strconv.Itoa(rnd.IntN(20))
	err := c.DB(rnd.IntN(c.Len())).Set(nil, []byte(key), make([]byte, rnd.IntN(200)), record.Never)
	if errors.Is(err, dberr.ErrNoSpace) {
		return nil
	}
	return err
}

// tidy checkpoints a database, or removes old segments.
func (p *followCut) tidy(rnd *rand.Rand, c *Catalog) error {
	if p.shared && p.removes && rnd.IntN(3) == 0 {
		return c.RemoveLogFiles(math.MaxInt64)
	}
	d := c.DB(rnd.IntN(c.Len()))
	return errors.Join(d.Synchronize(false, nil), d.log.Err())
}

// following is one process that follows the master.
type following struct {
	*followCut
	c       *Catalog
	noted   []uint64 // what the logs remember of at
	owed    []uint64 // and what of that pending waits for
	pending Pending
	saving  sync.WaitGroup // positions that are being made safe
}

// step does one thing that a follower does.
func (f *following) step() error {
	switch n := f.rnd.IntN(20); {
	case n < 14:
		return f.take(1 + f.rnd.IntN(12))
	case n < 17:
		return f.wait()
	case n < 19:
		return f.remember()
	}
	return f.sync()
}

// position is where all databases are; some may be ahead.
func (f *following) position() uint64 {
	at := uint64(math.MaxUint64)
	for _, n := range f.at {
		at = min(at, n)
	}
	return at
}

// state is what is remembered at a position, in which some databases may be ahead. It takes more
// than a sector now and then.
func (f *following) state(at uint64) []byte {
	state := make([]byte, 8*len(f.at), 8*len(f.at)+1000)
	for i := range f.at {
		binary.BigEndian.PutUint64(state[8*i:], max(at, f.at[i]))
	}
	return append(state, make([]byte, f.rnd.IntN(1000)*f.rnd.IntN(2))...)
}

// take applies the next updates of the master.
func (f *following) take(count int) error {
	var run []uint64
	from := f.position()
	for n := from + 1; n <= from+uint64(count); n++ {
		u := f.update(n)
		if u.db >= f.c.Len() || n <= f.at[u.db] {
			continue
		}
		if len(run) > 0 && f.master[run[0]-1].db != u.db {
			if err := f.apply(run); err != nil {
				return err
			}
			run = nil
		}
		run = append(run, n)
	}
	if err := f.apply(run); err != nil {
		return err
	}
	f.reach(from + uint64(count))
	return nil
}

// reach notes that every database has everything up to a position.
func (f *following) reach(at uint64) {
	for i := range f.at {
		f.at[i] = max(f.at[i], at)
	}
}

// update is the update with a number. The master makes it, if it has not.
func (f *following) update(n uint64) *masterUpdate {
	for uint64(len(f.master)) < n {
		u := masterUpdate{db: f.rnd.IntN(5), op: ulog.OpSet, key: strconv.Itoa(f.rnd.IntN(60)), value: fmt.Sprintf("%0*d", f.rnd.IntN(100), len(f.master))}
		switch f.rnd.IntN(40) {
		case 0:
			u.op, u.key = ulog.OpClear, ""
		case 1, 2, 3, 4:
			u.op = ulog.OpRemove
		}
		f.master = append(f.master, u)
	}
	return &f.master[n-1]
}

// apply stores updates of one database, and remembers the position with them.
func (f *following) apply(run []uint64) error {
	if len(run) == 0 {
		return nil
	}
	d := f.c.DB(f.master[run[0]-1].db)
	ups := make([]ulog.Update, len(run))
	for i, n := range run {
		u := &f.master[n-1]
		ups[i] = ulog.Update{SID: 9, Op: u.op, Key: []byte(u.key), Origin: ulog.Origin{Log: followedLog, Stamp: followedFrom + ulog.Stamp(n)}}
		if u.op == ulog.OpSet && d.persistent() {
			ups[i].Value = []byte(u.value)
		} else if u.op == ulog.OpSet {
			ups[i].Value = record.AppendXT(nil, record.MaxXT)
			ups[i].Value = append(ups[i].Value, u.value...)
		}
	}
	err := d.Replicate(&f.pending, ups, func(n int) *ulog.Position {
		f.reach(run[n-1] - 1)
		f.at[d.index] = run[n-1]
		f.note(d)
		return &ulog.Position{DBID: d.index, State: f.state(run[n-1])}
	}, nil)
	for i := range f.owed { // f.pending waits for the log of d, not for what Remember has put into the private logs of others
		if f.shared || i == int(d.index) {
			f.owed[i] = f.noted[i]
		}
	}
	return err
}

// note notes that the log of a database, or of all where it is nil, remembers where they are.
func (f *following) note(d *DB) {
	for i := range f.at {
		if d == nil || f.shared || i == int(d.index) {
			f.noted[i] = f.at[i]
		}
	}
}

// wait does what comes before the master is told that it has been heard.
func (f *following) wait() error {
	err := f.pending.Wait()
	if err == nil && f.oas {
		f.keep(f.owed)
	}
	return err
}

// remember notes the position without updates, and makes it safe while others come.
func (f *following) remember() error {
	if err := f.c.Remember(f.state(f.position())); err != nil {
		return err
	}
	f.note(nil)
	noted := slices.Clone(f.noted)
	f.saving.Go(func() {
		if f.c.SyncLogs() == nil {
			f.keep(noted)
		}
	})
	return nil
}

// sync makes everything safe.
func (f *following) sync() error {
	err := f.c.SyncLogs()
	if err == nil {
		f.keep(f.noted)
	}
	return err
}

// keep notes that the databases must not fall back behind positions any more.
func (f *following) keep(noted []uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, n := range noted {
		f.safe[i] = max(f.safe[i], n)
	}
}
