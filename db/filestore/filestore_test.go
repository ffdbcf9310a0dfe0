package filestore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt/errors"
	"go.uber.org/goleak"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mustOpen(t *testing.T, path string, limit int64) *Store {
	t.Helper()
	s, err := Open(path, Options{Limit: limit})
	require.NoError(t, err)
	return s
}

func set(key, value string) update.Update {
	return update.Update{Op: update.OpSet, Key: []byte(key), Value: []byte(value)}
}

func remove(key string) update.Update { return update.Update{Op: update.OpRemove, Key: []byte(key)} }

// mustList returns the records from a place on, one "key=value" each.
func mustList(t *testing.T, s *Store, from store.Start) []string {
	t.Helper()
	var got []string
	require.NoError(t, s.Scan(from, func(key, value []byte) bool {
		got = append(got, string(key)+"="+string(value))
		return true
	}))
	return got
}

// requireEqual compares a store with a plain map in every way that it can be read.
func requireEqual(t *testing.T, want map[string]string, s *Store) {
	t.Helper()
	keys := make([]string, 0, len(want))
	size := int64(0)
	for k, v := range want {
		keys = append(keys, k)
		size += int64(len(k) + len(v))
	}
	sort.Strings(keys)
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k + "=" + want[k]
	}
	if len(list) == 0 {
		list = nil
	}
	require.Equal(t, list, mustList(t, s, store.Start{Edge: true}))
	slices.Reverse(list)
	require.Equal(t, list, mustList(t, s, store.Start{Edge: true, Backward: true}))
	n, err := s.Count()
	require.NoError(t, err)
	require.Equal(t, int64(len(want)), n)
	require.Equal(t, size, s.Size())
}

// TestModel does random updates, checkpoints and reopenings to a store and a map.
func TestModel(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			path := filepath.Join(t.TempDir(), "m.kct")
			s := mustOpen(t, path, 1<<30)
			want := map[string]string{}
			for step := range 400 {
				s = randomStep(t, rnd, s, want, update.Stamp(step+1))
				if step%20 == 0 {
					requireEqual(t, want, s)
				}
			}
			requireEqual(t, want, s)
			require.NoError(t, s.Close())
			s = mustOpen(t, path, 1<<30)
			requireEqual(t, want, s)
			require.NoError(t, s.Close())
		})
	}
}

func randomStep(t *testing.T, rnd *rand.Rand, s *Store, want map[string]string, at update.Stamp) *Store {
	key := fmt.Sprintf("%03d", rnd.IntN(200))
	switch n := rnd.IntN(100); {
	case n < 60:
		value := fmt.Sprint(rnd.IntN(1000))
		s.Apply(at, []update.Update{set(key, value)})
		want[key] = value
	case n < 85:
		s.Apply(at, []update.Update{remove(key)})
		delete(want, key)
	case n < 87:
		s.Apply(at, []update.Update{{Op: update.OpClear}})
		clear(want)
	case n < 91:
		require.NoError(t, s.Checkpoint())
	case n < 93:
		setPiece(s, 1+rnd.IntN(30))
		_, err := s.mergeOn(true)
		require.NoError(t, err)
	case n < 96:
		_, err := s.Count() // settles what is not yet looked up
		require.NoError(t, err)
	default:
		value, found, err := s.Get([]byte("x"), []byte(key), nil)
		require.NoError(t, err)
		model, ok := want[key]
		require.Equal(t, ok, found)
		require.Equal(t, "x"+model, string(value))
	}
	return s
}

// setPiece sets how many entries the next piece of a merge takes.
func setPiece(s *Store, entries int) {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	s.merger.entries = entries
}

func TestScanBeginsAnywhere(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "s.kct"), 1<<30)
	defer s.Close()
	s.Apply(1, []update.Update{set("b", "1"), set("d", "1"), set("f", "1")})
	require.NoError(t, s.Checkpoint())
	s.Apply(2, []update.Update{set("a", "2"), set("d", "2"), remove("f"), set("g", "2")})
	for _, tc := range []struct {
		name string
		from store.Start
		want []string
	}{
		{"all", store.Start{Edge: true}, []string{"a=2", "b=1", "d=2", "g=2"}},
		{"all backward", store.Start{Edge: true, Backward: true}, []string{"g=2", "d=2", "b=1", "a=2"}},
		{"at a key", store.Start{Key: []byte("b"), Inclusive: true}, []string{"b=1", "d=2", "g=2"}},
		{"behind a key", store.Start{Key: []byte("b")}, []string{"d=2", "g=2"}},
		{"at no key", store.Start{Key: []byte("c"), Inclusive: true}, []string{"d=2", "g=2"}},
		{"before a key", store.Start{Key: []byte("d"), Backward: true}, []string{"b=1", "a=2"}},
		{"backward at a key", store.Start{Key: []byte("d"), Backward: true, Inclusive: true}, []string{"d=2", "b=1", "a=2"}},
		{"backward at a removed key", store.Start{Key: []byte("f"), Backward: true, Inclusive: true}, []string{"d=2", "b=1", "a=2"}},
		{"backward from behind the end", store.Start{Key: []byte("z"), Backward: true}, []string{"g=2", "d=2", "b=1", "a=2"}},
		{"behind the end", store.Start{Key: []byte("z")}, nil},
		{"at the empty key", store.Start{Inclusive: true}, []string{"a=2", "b=1", "d=2", "g=2"}},
	} {
		t.Run(tc.name, func(t *testing.T) { require.Equal(t, tc.want, mustList(t, s, tc.from)) })
	}
}

// TestReadersNeverSeeOldValues reads counters that only grow while checkpoints take them into the
// file.
func TestReadersNeverSeeOldValues(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "r.kct"), 1<<30)
	defer s.Close()
	const keys, rounds = 50, 40
	var done atomic.Bool
	var written [keys]atomic.Int64
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := 0; !done.Load(); i = (i + 1) % keys {
				floor := written[i].Load()
				value, _, err := s.Get(nil, fmt.Appendf(nil, "k%02d", i), nil)
				if err != nil || parse(value) < floor {
					t.Errorf("key %d: read %q after %d was written (%v)", i, value, floor, err)
					return
				}
			}
		})
	}
	readers.Go(func() {
		var all [][]byte
		for i := range keys {
			all = append(all, fmt.Appendf(nil, "k%02d", i))
		}
		for !done.Load() {
			var floors, read [keys]int64
			for i := range keys {
				floors[i] = written[i].Load()
			}
			n, err := s.GetBulk(all, func(i int, value []byte) { read[i] = parse(value) })
			for i := range keys {
				if err != nil || n != keys || read[i] < floors[i] {
					t.Errorf("key %d of a bulk: read %d after %d was written (%d, %v)", i, read[i], floors[i], n, err)
					return
				}
			}
		}
	})
	for round := range int64(rounds) {
		for i := range keys {
			s.Apply(update.Stamp(round+1), []update.Update{set(fmt.Sprintf("k%02d", i), fmt.Sprint(round))})
			written[i].Store(round)
		}
		require.NoError(t, s.Checkpoint())
	}
	done.Store(true)
	readers.Wait()
}

func parse(value []byte) (n int64) {
	_, _ = fmt.Sscan(string(value), &n)
	return n
}

func TestWritersWaitForCheckpoints(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "w.kct"), 64<<10)
	defer s.Close()
	value := bytes.Repeat([]byte("v"), 1000)
	for i := range 2000 {
		require.NoError(t, s.Throttle())
		s.Apply(update.Stamp(i+1), []update.Update{{Op: update.OpSet, Key: fmt.Appendf(nil, "%05d", i), Value: value}})
	}
	require.Less(t, s.brake.active.Load(), int64(4*64<<10))
	n, err := s.Count()
	require.NoError(t, err)
	require.Equal(t, int64(2000), n)
}

func TestHoldKeepsTheFileAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.kct")
	s := mustOpen(t, path, 1<<30)
	s.Apply(1, []update.Update{set("before", "1")})
	epoch := s.Meta().Epoch
	copied := path + ".copy"
	require.NoError(t, s.Hold(func() error {
		s.Apply(2, []update.Update{set("meanwhile", "2")})
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		return os.WriteFile(copied, data, 0o644)
	}))
	require.Greater(t, s.Meta().Epoch, epoch, "a copy must be known as a copy")
	require.NoError(t, s.Close())
	c := mustOpen(t, copied, 1<<30)
	requireEqual(t, map[string]string{"before": "1"}, c)
	require.NoError(t, c.Close())
}

func TestForeignFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"cabinet.kch": "KC\n\x00" + string(make([]byte, 100)),
		"other.kch":   "something else entirely, long enough to be read",
		"short.kch":   "x",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
		_, err := Open(path, Options{})
		require.Error(t, err, name)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, content, string(after), "the file must be untouched")
	}
	_, err := Open(filepath.Join(dir, "cabinet.kch"), Options{})
	require.ErrorIs(t, err, ErrKyotoCabinet)
	require.ErrorContains(t, err, "kttimedmgr dump", "a dump has the expiration times, which a list of records has not")
	require.NotContains(t, err.Error(), "list")
}

func TestMissingFileReadOnly(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "no.kct"), Options{ReadOnly: true})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestSecondOpenIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.kct")
	s := mustOpen(t, path, 0)
	defer s.Close()
	_, err := Open(path, Options{TryLock: true})
	require.ErrorIs(t, err, ErrInUse)
}

// TestCountDuringCheckpoints counts between the transactions of a flush and a merge.
func TestCountDuringCheckpoints(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "c.kct"), 1<<30)
	s.cp.stop() // the test does the steps
	const base, over = 3000, 4500
	for i := range base {
		s.Apply(1, []update.Update{set(fmt.Sprintf("%05d", i), "old")})
	}
	require.NoError(t, s.Merge())
	for i := base / 2; i < over; i++ {
		s.Apply(2, []update.Update{set(fmt.Sprintf("%05d", i), strings.Repeat("new", 50))})
	}
	s.Apply(3, []update.Update{remove("00001"), remove("04000"), remove("no such")})
	count := func() {
		t.Helper()
		n, err := s.Count()
		require.NoError(t, err)
		require.Equal(t, int64(over-2), n)
		for _, r := range s.runs.newest().runs {
			r.total = nil // count anew
		}
	}
	s.opts.Limit = 1 << 10 // so that a flush takes several transactions
	o, flushes := s.freeze(), 0
	for f := s.newFlushing(o); !f.done; flushes++ {
		count()
		o.total = nil
		require.NoError(t, f.step(false))
	}
	count()
	s.takeOut()
	merges := 0
	for more := true; more; merges++ {
		var err error
		setPiece(s, 700)
		s.opts.Limit = 1 << 30
		more, err = s.mergeOn(true)
		require.NoError(t, err)
		count()
	}
	require.Greater(t, flushes, 2)
	require.Greater(t, merges, 3)
	require.NoError(t, s.closeFile())
}

// TestCountAfterAHalfDoneCheckpoint counts in a file whose last process stopped within a
// checkpoint, while the overlay of this one waits to be written.
func TestCountAfterAHalfDoneCheckpoint(t *testing.T) {
	for name, ups := range map[string][]update.Update{
		"set":   {set("a", "1"), set("b", "2"), set("z", "3")},
		"clear": {{Op: update.OpClear}, set("a", "1"), set("b", "2"), set("z", "3")},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "h.kct")
			s := mustOpen(t, path, 1<<30)
			s.Apply(1, []update.Update{set("a", "0")})
			require.NoError(t, s.Checkpoint())
			require.NoError(t, s.Amend(func(m *Meta) { m.Merging, m.MergeEpoch = []byte("m"), m.Epoch }))
			require.NoError(t, s.Abandon())

			s = mustOpen(t, path, 1<<30)
			defer s.Close()
			require.NoError(t, s.Amend(func(m *Meta) { m.Epoch++ })) // as every start does
			s.Apply(2, ups)
			s.freeze()
			n, err := s.Count()
			require.NoError(t, err)
			require.Equal(t, int64(3), n)
		})
	}
}

// Who comes too late, after Close, gets an error and not what was there.
func TestAClosedStoreSaysSo(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "a.kct"), Options{})
	require.NoError(t, err)
	s.Apply(1, []update.Update{{Op: update.OpSet, Key: []byte("k"), Value: []byte("v")}})
	require.NoError(t, s.Close())
	_, _, err = s.Get(nil, []byte("k"), nil)
	require.ErrorIs(t, err, errors.ErrDatabaseNotOpen)
	require.Error(t, s.Scan(store.Start{Edge: true}, func(_, _ []byte) bool { return true }))
}

// A large value that waits for the disk holds up further large ones only.
func TestSmallUpdatesDoNotWaitForLargeValues(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "w.kct"), 1<<20)
	defer s.Close()
	s.cp.runMu.Lock() // no checkpoint
	set := func(i int, value []byte) {
		s.Apply(update.Stamp(i), []update.Update{{Op: update.OpSet, Key: fmt.Appendf(nil, "%05d", i), Value: value}})
	}
	set(1, make([]byte, 5<<20)) // more than the limit: the overlay is frozen
	require.NoError(t, s.Throttle())
	set(2, []byte("small"))
	set(3, make([]byte, 60<<10))
	require.EqualValues(t, 5<<20, s.brake.large.Load())
	done := make(chan error, 1)
	go func() { done <- s.ThrottleLarge() }()
	require.NoError(t, s.Throttle())
	select {
	case <-done:
		t.Fatal("the large one did not wait")
	default:
	}
	s.cp.runMu.Unlock()
	require.NoError(t, <-done)
}

func TestReplacedLargeValuesAreNotCounted(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "l.kct"), 1<<30)
	defer s.Close()
	for _, size := range []int{5 << 20, 1 << 20, 10} {
		s.Apply(1, []update.Update{{Op: update.OpSet, Key: []byte("k"), Value: make([]byte, size)}})
		require.EqualValues(t, size-size%(64<<10), s.brake.large.Load())
	}
}
