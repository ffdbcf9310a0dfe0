package filestore

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

var errLate = errors.New("written, but the disk says no")

// failLate makes the next commit return an error although it took place, as a failed sync behind the
// write of bbolt's meta page does.
func failLate(s *Store) {
	write := writes(s)
	real := *write
	*write = func(b []byte, at int64) (int, error) {
		n, err := real(b, at)
		if at < 2*int64(s.file.Info().PageSize) && err == nil {
			*write, err = real, errLate
		}
		return n, err
	}
}

// writes is the function with which bbolt writes to the file.
func writes(s *Store) *func([]byte, int64) (int, error) {
	field := reflect.ValueOf(s.file).Elem().FieldByName("ops").FieldByName("writeAt")
	return (*func([]byte, int64) (int, error))(unsafe.Pointer(field.UnsafeAddr()))
}

// quiet opens a store whose steps the test does.
func quiet(t *testing.T, o Options) (*Store, string) {
	path := filepath.Join(t.TempDir(), "a.kct")
	s, err := Open(path, o)
	require.NoError(t, err)
	s.cp.stop()
	t.Cleanup(func() { _ = s.closeFile() })
	return s, path
}

// reopened returns what the file has after the death of the process.
func reopened(t *testing.T, s *Store, path string) *Store {
	require.NoError(t, s.closeFile())
	again, err := Open(path, Options{Limit: 1 << 30})
	require.NoError(t, err)
	again.cp.stop()
	t.Cleanup(func() { _ = again.closeFile() })
	return again
}

// The last transaction of a flush took place although its commit failed; the flush is tried again.
func TestFlushAfterACommitThatTookPlace(t *testing.T) {
	for _, first := range []update.Op{update.OpSet, update.OpClear} {
		t.Run(fmt.Sprintf("%#x", byte(first)), func(t *testing.T) {
			s, path := quiet(t, Options{Limit: 1 << 30})
			ups := []update.Update{{Op: first, Key: []byte("a"), Value: []byte("0")}, set("a", "1"), set("b", "1")}
			s.Apply(1, ups)
			failLate(s)
			require.ErrorIs(t, s.Checkpoint(), errLate)
			var err error
			require.NotPanics(t, func() { err = s.Checkpoint() })
			require.NoError(t, err)
			want := map[string]string{"a": "1", "b": "1"}
			requireEqual(t, want, s)
			require.NotEmpty(t, s.runs.newest().runs)
			s = reopened(t, s, path)
			require.EqualValues(t, 1, s.Meta().Stamp)
			requireEqual(t, want, s)
		})
	}
}

// The same, then the runs are merged.
func TestMergeAfterAFlushThatTookPlace(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 1 << 30})
	s.Apply(1, []update.Update{set("a", "1"), set("b", "1")})
	failLate(s)
	require.ErrorIs(t, s.Checkpoint(), errLate)
	var err error
	require.NotPanics(t, func() { err = s.Merge() })
	require.NoError(t, err)
	requireEqual(t, map[string]string{"a": "1", "b": "1"}, s)
}

// A piece of a merge took place although its commit failed.
func TestCountAfterAPieceThatTookPlace(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 1 << 30})
	s.Apply(1, []update.Update{set("a", "1"), set("b", "1")})
	require.NoError(t, s.Checkpoint())
	failLate(s)
	_, err := s.mergeOn(true)
	require.ErrorIs(t, err, errLate)
	require.NoError(t, s.Merge())
	requireEqual(t, map[string]string{"a": "1", "b": "1"}, s)
	require.EqualValues(t, 2, s.Meta().Count)
}

// The piece that drops the last run took place although its commit failed.
func TestMergeAfterADropThatTookPlace(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 1 << 30})
	s.Apply(1, []update.Update{set("a", "1")})
	require.NoError(t, s.Checkpoint())
	_, err := s.mergeOn(true)
	require.NoError(t, err)
	failLate(s)
	_, err = s.mergeOn(true)
	require.ErrorIs(t, err, errLate)
	require.NotPanics(t, func() { _, err = s.mergeOn(true) })
	require.NoError(t, err)
	requireEqual(t, map[string]string{"a": "1"}, s)
}

// A writer that waits for the clock of the brake goes on when the debt is gone.
func TestTheBrakeLetsGo(t *testing.T) {
	const limit = 64 << 20
	b := newBrake(limit)
	b.flush, b.merge = 20e6, 1e6
	b.frozen.Store(4 * limit)
	b.adjust()
	for range 20 { // one update each of twenty clients
		b.note(0, 0, 1<<20)
	}
	done := make(chan struct{})
	go func() { b.slow(); close(done) }()
	require.Eventually(t, func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.waiting == 1 }, 10*time.Second, time.Millisecond)
	b.frozen.Store(0) // everything was flushed
	b.flushed(nil)
	b.adjust()
	require.Zero(t, rateOf(b))
	select {
	case <-done:
	case <-time.After(15 * time.Second):
		b.mu.Lock()
		defer b.mu.Unlock()
		t.Errorf("no debt, and the writer waits for another %v", time.Until(b.next))
	}
}

// A slow disk makes the pieces of a merge small: the brake has to know of it all the same.
func TestTheBrakeKnowsOfSlowMerges(t *testing.T) {
	b := newBrake(64 << 20)
	b.worked(&b.flush, 64<<20, time.Second)
	for range 100 { // 250 records of 116 bytes on cold pages
		b.worked(&b.merge, pieceLeast*116, time.Second)
	}
	b.runs.Store(2 * mergeRuns)
	b.adjust()
	require.Less(t, rateOf(b), 1e6, "merges bring 29 KB a second")
}

// A limit of few bytes does not drop runs that are not merged.
func TestMergeWithATinyLimit(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 3})
	s.Apply(1, []update.Update{set("a", "1")})
	require.NoError(t, s.Merge())
	requireEqual(t, map[string]string{"a": "1"}, s)
}

// A flush comes between the view and the transaction of a count.
func TestCountWhileTheActiveOverlayIsFlushed(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 1 << 30})
	s.Apply(1, []update.Update{set("a", "1"), set("b", "1")})
	n, err := s.Count() // looks a and b up
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	l := layers{view: s.acquire()} // as usageWithin does
	require.NoError(t, s.Checkpoint())
	require.NoError(t, l.open(s))
	require.True(t, l.overtaken(s), "what was counted in the overlay would count twice")
	l.end()
	n, err = s.Count()
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
}

// The first flush of a file that is told to keep versions is a clear.
func TestClearOfAFileThatBeginsToKeepVersions(t *testing.T) {
	s, path := quiet(t, Options{Limit: 1 << 30})
	s.Apply(1, []update.Update{set("a", "1")})
	require.NoError(t, s.Checkpoint())
	require.NoError(t, s.closeFile())
	s, err := Open(path, Options{Limit: 1 << 30, LWW: true})
	require.NoError(t, err)
	defer s.closeFile()
	s.cp.stop()
	s.Apply(2, []update.Update{{Op: update.OpClear}})
	require.NoError(t, s.Checkpoint())
}

// A slow drop of a run says nothing of the size of a piece.
func TestADropLeavesTheSizeOfAPiece(t *testing.T) {
	g := merger{entries: batchEntries}
	g.learn(piece{}, time.Second)
	require.Equal(t, batchEntries, g.entries)
}

// Where the list of free pages is as long as the records of a piece, the next pieces have more
// records, and take longer for that, up to a bound. Where it is short, only the time counts.
func TestAPieceIsWorthItsTransaction(t *testing.T) {
	learned := func(entries int, p piece, took time.Duration) int {
		g := merger{entries: entries}
		for range 50 { // records and time follow the entries, the list is as it is
			part := float64(g.entries) / float64(entries)
			now := piece{entries: g.entries, records: int64(part * float64(p.records)), own: p.own}
			g.learn(now, time.Duration(part*float64(took)))
		}
		return g.entries
	}
	const mb = 1 << 20
	require.InDelta(t, 5000, learned(5000, piece{records: 4 * mb, own: mb}, pieceTime), 50)
	require.InDelta(t, 2500, learned(5000, piece{records: 4 * mb, own: mb / 2}, 2*pieceTime), 50)
	require.InDelta(t, 7500, learned(5000, piece{records: 4 * mb, own: 2 * mb}, pieceTime), 100)
	require.InDelta(t, 8000, learned(2000, piece{records: 1, own: 4 * mb}, pieceTime), 100)
	require.InDelta(t, batchEntries, learned(10_000, piece{records: 4 * mb, own: 8 * mb}, pieceTime), 10)
}

// Scans with a half merged file, in both directions and from every key.
func TestScanFromEverywhereInAHalfMergedFile(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 1 << 30})
	want := map[string]string{}
	for round := range 6 {
		for i := range 40 {
			key := fmt.Sprintf("%02d", (i*7+round*3)%60)
			if i%5 == round%5 {
				s.Apply(update.Stamp(round*100+i+1), []update.Update{remove(key)})
				delete(want, key)
				continue
			}
			s.Apply(update.Stamp(round*100+i+1), []update.Update{set(key, fmt.Sprint(round))})
			want[key] = fmt.Sprint(round)
		}
		if round < 5 {
			require.NoError(t, s.Checkpoint())
		}
		setPiece(s, 11)
		_, err := s.mergeOn(true)
		require.NoError(t, err)
		for k := range 61 {
			at := fmt.Sprintf("%02d", k)
			for _, inclusive := range []bool{false, true} {
				var up, down []string
				for i := range 60 {
					key := fmt.Sprintf("%02d", i)
					v, ok := want[key]
					if ok && (key > at || key == at && inclusive) {
						up = append(up, key+"="+v)
					}
					if ok && (key < at || key == at && inclusive) {
						down = append([]string{key + "=" + v}, down...)
					}
				}
				require.Equal(t, up, mustList(t, s, store.Start{Key: []byte(at), Inclusive: inclusive}))
				require.Equal(t, down, mustList(t, s, store.Start{Key: []byte(at), Inclusive: inclusive, Backward: true}))
			}
		}
		requireEqual(t, want, s)
	}
}

// Updates go into the file while Freeze counts runs that nobody has counted yet, which may take
// minutes in a large file.
func TestFreezeCountsWithoutTheLockOfFlushes(t *testing.T) {
	s, path := quiet(t, Options{Limit: 1 << 30})
	s.Apply(1, []update.Update{set("a", "1")})
	require.NoError(t, s.Checkpoint())
	s = reopened(t, s, path)
	r := s.runs.newest().runs[0]
	r.counting.Lock() // the count takes long
	frozen := make(chan error, 1)
	go func() {
		f, err := s.Freeze(func(take func()) { take() })
		if err == nil {
			err = f.Close()
		}
		frozen <- err
	}()
	before := s.Meta().Checkpoints
	require.Eventually(t, func() bool { return s.Meta().Checkpoints > before }, 10*time.Second, time.Millisecond)
	flushed := make(chan error, 1)
	go func() { flushed <- s.Checkpoint() }()
	select {
	case err := <-flushed:
		require.NoError(t, err)
	case <-time.After(30 * time.Second): // for fsyncs of a busy disk; the count would take for ever
		t.Error("a flush waits for the count")
		r.counting.Unlock()
		require.NoError(t, <-flushed)
		require.NoError(t, <-frozen)
		return
	}
	r.counting.Unlock()
	require.NoError(t, <-frozen)
}

// Nobody knows which runs the file has, because it could not be read after a failure: the next flush
// asks again before it gives its run a number.
func TestFlushAfterTheRunsWereForgotten(t *testing.T) {
	s, path := quiet(t, Options{Limit: 1 << 30})
	s.Apply(1, []update.Update{set("a", "1")})
	require.NoError(t, s.Checkpoint())
	s.runs.lists.Store(&[]*runList{})
	s.Apply(2, []update.Update{set("b", "2")})
	require.NoError(t, s.Checkpoint())
	want := map[string]string{"a": "1", "b": "2"}
	requireEqual(t, want, s)
	require.Len(t, s.runs.newest().runs, 2)
	requireEqual(t, want, reopened(t, s, path))
}

// A commit that failed took place, while a view from before it is open. bbolt takes the pages that
// the commit has replaced for free then, but the view still needs them.
func TestAViewOutlivesACommitThatTookPlace(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 1 << 30})
	want := map[string]string{}
	for i := range 3000 {
		key := fmt.Sprintf("%05d", i)
		s.Apply(update.Stamp(i+1), []update.Update{set(key, "old")})
		want[key] = "old"
	}
	require.NoError(t, s.Merge())
	view, err := s.Freeze(func(take func()) { take() })
	require.NoError(t, err)
	change := func(value string) {
		for i := range 3000 {
			s.Apply(s.Meta().Stamp+1, []update.Update{set(fmt.Sprintf("%05d", i), value)})
		}
	}
	change("new")
	require.NoError(t, s.Checkpoint())
	failLate(s)
	_, err = s.mergeOn(true)
	require.ErrorIs(t, err, errLate)
	for _, value := range []string{"newer", "newest"} {
		change(value)
		require.ErrorIs(t, s.Checkpoint(), errOlderReaders)
		_, err = s.mergeOn(true)
		require.ErrorIs(t, err, errOlderReaders)
		require.ErrorIs(t, s.Amend(func(*Meta) {}), errOlderReaders)
	}
	got := map[string]string{}
	require.NoError(t, view.Scan(false, func(key, value []byte) error {
		got[string(key)] = string(value)
		return nil
	}))
	require.Equal(t, want, got)
	younger, err := s.Count()
	require.NoError(t, err)
	require.EqualValues(t, 3000, younger)
	require.NoError(t, view.Close())
	require.NoError(t, s.Merge())
	for key := range want {
		want[key] = "newest"
	}
	requireEqual(t, want, s)
}

// A compaction reads the file piece by piece, and is a reader like others.
func TestACompactionOutlivesACommitThatTookPlace(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 1 << 30})
	want := fillLoosely(t, s)
	reading, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.readFile(func(*bolt.Tx) error {
			close(reading)
			<-goOn
			return nil
		})
	}()
	<-reading
	s.Apply(s.Meta().Stamp+1, []update.Update{set("a", "1")})
	want["a"] = "1"
	failLate(s)
	require.ErrorIs(t, s.Checkpoint(), errLate)
	require.ErrorIs(t, s.Checkpoint(), errOlderReaders)
	close(goOn)
	require.NoError(t, <-ended)
	require.NoError(t, s.Checkpoint())
	require.NoError(t, compact(s))
	requireEqual(t, want, s)
}
