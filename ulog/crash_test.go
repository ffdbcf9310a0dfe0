package ulog

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs/crashfs"
	"gotycoon/internal/vfs/faultfs"
)

// crashWorld is what has to be true of a log that lives through power cuts.
type crashWorld struct {
	t    *testing.T
	rnd  *rand.Rand
	opts Options
	dir  string

	mu     sync.Mutex
	bulks  map[int]int  // size of each bulk appended, by number
	acked  map[int]bool // bulks that must survive
	next   int          // number of the next bulk
	newest Stamp        // largest stamp handed out
	told   Stamp        // largest stamp that followers were promised
	clock  *clock
}

// TestPowerCuts cuts the power 200 times in the middle of what several writers do, with fsync for
// each group and without, where only what SyncTo has confirmed must survive. Whatever the disk
// keeps of the rest: acknowledged bulks are there, every bulk is whole or absent, and stamps grow,
// also beyond what followers were promised, wherever the clock is.
func TestPowerCuts(t *testing.T) {
	for _, each := range []bool{false, true} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprintf("SyncEach=%v seed=%d", each, seed), func(t *testing.T) {
				t.Parallel()
				w := &crashWorld{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), bulks: map[int]int{}, acked: map[int]bool{}, clock: newClock()}
				w.opts = Options{Limit: 2000, Ahead: 100, SyncEach: each, SyncInterval: time.Millisecond, Now: w.clock.now}
				w.dir = filepath.Join(t.TempDir(), "0")
				for i := range 20 {
					w.live(filepath.Join(t.TempDir(), fmt.Sprint(i+1)))
				}
			})
		}
	}
}

// live opens the log, checks it and works, with up to two process deaths, until the power cut, and
// leaves the disk in another directory.
func (w *crashWorld) live(after string) {
	require.NoError(w.t, os.MkdirAll(w.dir, 0o755))
	disk, err := crashfs.New(w.dir)
	require.NoError(w.t, err)
	kills := w.rnd.IntN(3)
	for i := range kills + 1 {
		fs := faultfs.New(disk)
		w.opts.FS = fs
		w.clock.add([]time.Duration{time.Second, 0, -time.Second, -time.Hour, time.Hour}[w.rnd.IntN(5)])
		l, err := Open(nested(w.dir), w.opts)
		if i > 0 && errors.Is(err, crashfs.ErrPowerCut) {
			break
		}
		require.NoError(w.t, err)
		require.GreaterOrEqual(w.t, l.Last(), w.check(nested(w.dir)))
		if i < kills {
			fs.FailChange(1+w.rnd.IntN(60), errKilled)
		}
		if i == 0 {
			disk.CutAfter(1 + w.rnd.IntN(60*(kills+1)))
		}
		w.work(l)
	}
	disk.Cut()
	require.NoError(w.t, disk.Crash(w.rnd, after))
	w.dir = after
}

// errKilled ends a process but not the disk.
var errKilled = errors.New("killed")

// work has several goroutines use the log until it fails.
func (w *crashWorld) work(l *Log) {
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { w.write(l) })
	}
	wg.Go(func() { w.tell(l) })
	wg.Go(func() {
		for l.writer.tidy(true) == nil { // as often as possible, not once a second
			runtime.Gosched()
		}
	})
	wg.Wait()
	require.Error(w.t, l.Close())
	require.True(w.t, errors.Is(l.Err(), crashfs.ErrPowerCut) || errors.Is(l.Err(), errKilled), "%v", l.Err())
}

// tell promises stamps to followers, as heartbeats do, and takes stamps without records.
func (w *crashWorld) tell(l *Log) {
	for i := 0; l.Err() == nil; i++ {
		var at Stamp
		switch i % 3 {
		case 0:
			at = l.Promise(StampAt(w.clock.now()))
		case 1:
			at = l.Promise(l.End())
		case 2:
			if at = l.Tick(); l.SyncTo(at) != nil {
				return
			}
		}
		w.mu.Lock()
		w.told = max(w.told, at)
		w.mu.Unlock()
		w.clock.add(time.Millisecond)
		runtime.Gosched()
	}
}

// write appends bulks until the power is gone.
func (w *crashWorld) write(l *Log) {
	for i := 0; ; i++ {
		w.mu.Lock()
		n, size := w.next, 1+w.rnd.IntN(5)
		w.next++
		w.bulks[n] = size
		told, early := w.told, size == 1 && w.rnd.IntN(3) > 0
		w.mu.Unlock()
		var ups []Update
		for j := range size {
			ups = append(ups, set(fmt.Sprintf("%d.%d", n, j)))
		}
		if early && !writeAhead(l, &ups[0], i%4 == 0) {
			continue // nothing was appended
		}
		s, err := l.Append(ups)
		ups[0].Ahead.Discard()
		if err == nil && s-Stamp(size) < told {
			panic(fmt.Sprintf("stamp %d is given out, followers were promised %d", s, told))
		}
		if err == nil && w.opts.SyncEach {
			err = l.Wait(s)
		} else if err == nil && i%3 == 0 {
			err = l.SyncTo(s)
		} else if err == nil {
			if err = l.Wait(s); err == nil {
				continue // written is not enough to survive
			}
		}
		if err != nil {
			return
		}
		w.mu.Lock()
		w.acked[n] = true
		w.newest = max(w.newest, s)
		w.mu.Unlock()
	}
}

// writeAhead gives an update a value of some blocks and writes it before the update's turn. It
// reports whether the update is to be appended; with discard it is not.
func writeAhead(l *Log, u *Update, discard bool) bool {
	u.Value, u.Stays = bytes.Repeat(u.Value, 150), true
	a, err := l.WriteAhead(u, nil)
	if discard || err != nil {
		a.Discard()
		runtime.Gosched()
		return false
	}
	u.Ahead = a
	return true
}

// check reads the log and returns its newest stamp.
func (w *crashWorld) check(dir string) (last Stamp) {
	all, damage, reports := drain(w.t, dir, 0)
	require.Empty(w.t, damage)
	require.Empty(w.t, reports)
	seen := map[int]int{}
	for _, g := range all {
		require.Greater(w.t, g.stamp, last)
		last = g.stamp
		u, err := ParseMessage([]byte(g.msg))
		require.NoError(w.t, err)
		var n, j int
		_, err = fmt.Sscanf(string(u.Key), "%d.%d", &n, &j)
		require.NoError(w.t, err)
		require.Equal(w.t, seen[n], j, "bulk %d in order", n)
		seen[n]++
	}
	for n, size := range w.bulks {
		if have := seen[n]; have != size {
			require.Zero(w.t, have, "bulk %d of %d is neither whole nor absent", n, size)
			require.False(w.t, w.acked[n], "bulk %d was acknowledged", n)
			delete(w.bulks, n) // lost for good: it must not come back
		}
	}
	for n := range seen {
		require.NotZero(w.t, w.bulks[n], "bulk %d had been lost", n)
	}
	require.GreaterOrEqual(w.t, last, w.newest)
	return last
}

// nested returns where a test has its log: Open makes three directories, and a power cut may take
// each of them until it is synced.
func nested(root string) string { return filepath.Join(root, "srv", "logs", "ulog") }

// TestPowerCutAtEachStep cuts the power at every single change of a short life with rotations.
func TestPowerCutAtEachStep(t *testing.T) {
	for step := 1; ; step++ {
		dir := t.TempDir()
		fs, err := crashfs.New(dir)
		require.NoError(t, err)
		fs.CutAfter(step)
		acked, err := shortLife(nested(dir), Options{FS: fs, SyncEach: true, SyncInterval: time.Hour, Limit: 150, Ahead: 100})
		if err == nil {
			require.Greater(t, step, 30, "all steps were tried")
			return
		}
		require.ErrorIs(t, err, crashfs.ErrPowerCut)
		for seed := range uint64(5) {
			after := filepath.Join(t.TempDir(), fmt.Sprint(seed))
			require.NoError(t, fs.Crash(rand.New(rand.NewPCG(seed, uint64(step))), after))
			disk, err := crashfs.New(after)
			require.NoError(t, err)
			require.NoError(t, mustOpen(t, nested(after), Options{FS: disk}).Close())
			have := readKeys(t, nested(after))
			require.GreaterOrEqual(t, len(have), len(acked))
			require.Equal(t, acked, append([]string{}, have[:len(acked)]...), "step %d seed %d", step, seed)
			require.LessOrEqual(t, len(have), len(acked)+1)
		}
	}
}

// shortLife opens a log and commits some keys, every third with a large value; it returns those
// that were acknowledged.
func shortLife(dir string, o Options) (acked []string, err error) {
	l, err := Open(dir, o)
	if err != nil {
		return []string{}, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	acked = []string{}
	for i, k := range keys("k", 8) {
		u := set(k)
		if i%3 == 2 {
			u = setLarge(k)
		}
		a, err := l.WriteAhead(&u, nil)
		if err != nil {
			return acked, err
		}
		u.Ahead = a
		s, err := l.Append([]Update{u})
		if err == nil {
			err = l.Wait(s)
		}
		if err != nil {
			return acked, err
		}
		acked = append(acked, k)
	}
	return acked, nil
}

// TestDeathThenPowerCut leaves written but unsynced groups behind, opens the log again and cuts the
// power: what Open has found counts as synced from then on.
func TestDeathThenPowerCut(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "ulog")
	disk, err := crashfs.New(root)
	require.NoError(t, err)
	fs := faultfs.New(disk)
	l := mustOpen(t, dir, Options{FS: fs, SyncInterval: time.Hour})
	want := keys("k", 50)
	mustCommit(t, l, want...)
	fs.FailChange(1, errKilled)
	require.ErrorIs(t, l.Close(), errKilled)

	l = mustOpen(t, dir, Options{FS: disk, SyncInterval: time.Hour})
	require.NoError(t, l.SyncTo(l.Last()))
	disk.Cut()
	require.ErrorIs(t, l.Close(), crashfs.ErrPowerCut)
	for seed := range uint64(20) {
		after := filepath.Join(t.TempDir(), fmt.Sprint(seed))
		require.NoError(t, disk.Crash(rand.New(rand.NewPCG(seed, 0)), after))
		l := mustOpen(t, filepath.Join(after, "ulog"), Options{})
		require.NoError(t, l.Close())
		require.Equal(t, want, readKeys(t, filepath.Join(after, "ulog")))
	}
}

// TestDeathAtEachStep ends the process at every single change of a short life; the next one goes on
// until a power cut.
func TestDeathAtEachStep(t *testing.T) {
	o := Options{SyncEach: true, SyncInterval: time.Hour, Ahead: 100}
	for step := 1; ; step++ {
		root := t.TempDir()
		disk, err := crashfs.New(root)
		require.NoError(t, err)
		fs := faultfs.New(disk)
		fs.FailChange(step, errKilled)
		o.FS, o.Limit = fs, 150
		acked, died := shortLife(nested(root), o)
		o.FS, o.Limit = disk, -1 // a rotation would sync what the first process has not
		more, err := shortLife(nested(root), o)
		require.NoError(t, err)
		disk.Cut()
		for seed := range uint64(5) {
			after := filepath.Join(t.TempDir(), fmt.Sprint(seed))
			require.NoError(t, disk.Crash(rand.New(rand.NewPCG(seed, uint64(step))), after))
			have := readKeys(t, nested(after))
			rest := len(have) - len(more)
			require.GreaterOrEqual(t, rest, len(acked), "step %d seed %d: %v", step, seed, have)
			require.LessOrEqual(t, rest, len(acked)+1)
			require.Equal(t, acked, append([]string{}, have[:len(acked)]...))
			require.Equal(t, more, have[rest:])
		}
		if died == nil {
			require.Greater(t, step, 30, "all steps were tried")
			return
		}
	}
}
