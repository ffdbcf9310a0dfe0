package filestore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/ulog/update"
)

// compact compacts a file and waits for the end.
func compact(s *Store) error {
	c, err := s.Compact(CompactOptions{Fast: true})
	if err != nil {
		return err
	}
	<-c.Done()
	return c.Err()
}

// fillLoosely stores records and removes most of them: the file is far larger than its records.
func fillLoosely(t *testing.T, s *Store) map[string]string {
	t.Helper()
	want := map[string]string{}
	at := s.Meta().Stamp
	for i := range 6_000 {
		at++
		s.Apply(at, []update.Update{set(fmt.Sprintf("%05d", i), fmt.Sprintf("%0100d", i))})
	}
	require.NoError(t, s.Merge())
	for i := range 6_000 {
		if i%10 == 0 {
			want[fmt.Sprintf("%05d", i)] = fmt.Sprintf("%0100d", i)
			continue
		}
		at++
		s.Apply(at, []update.Update{remove(fmt.Sprintf("%05d", i))})
	}
	require.NoError(t, s.Merge())
	return want
}

func TestCompactGivesSpaceBack(t *testing.T) {
	for _, lww := range []bool{false, true} {
		t.Run(fmt.Sprint(lww), func(t *testing.T) {
			s, path := quiet(t, Options{Limit: 1 << 30, LWW: lww, Removals: 10})
			want := fillLoosely(t, s)
			before := s.FileSize()
			_, needed := s.NeededSize()
			old := s.Meta()
			require.NoError(t, compact(s))
			requireEqual(t, want, s)
			require.Less(t, s.FileSize(), before/4)
			require.InDelta(t, needed, s.FileSize(), float64(needed)/2, "about as large as expected")
			require.NoFileExists(t, path+copySuffix)
			require.Equal(t, old, s.Meta())
			e, found, err := s.Entry([]byte("00010"))
			require.NoError(t, err)
			require.Equal(t, lww, found)
			require.False(t, e.Removed)

			s.Apply(s.Meta().Stamp+1, []update.Update{set("x", "new")})
			want["x"] = "new"
			require.NoError(t, s.Merge())
			requireEqual(t, want, s)
			require.EqualValues(t, len(want), s.Meta().Count)
			require.NoError(t, compact(s), "once more")
			s = reopened(t, s, path)
			requireEqual(t, want, s)
			st := s.CompactionStats()
			require.False(t, st.Known, "figures are those of one process")
		})
	}
}

// Runs that come up while the tree is copied, versions, large values and empty ones are in the copy.
func TestCompactWhileRunsComeUp(t *testing.T) {
	s, path := quiet(t, Options{Limit: 1 << 30, LWW: true})
	want := fillLoosely(t, s)
	n, at := 0, s.Meta().Stamp+1
	s.compactor.disk.step = func(name string) error {
		if name != "piece" || n == 7 {
			return nil
		}
		n++
		at++
		key, value := fmt.Sprintf("new%d", n), string(bytes.Repeat([]byte{'v'}, n*n*n*1000))
		s.Apply(at, []update.Update{set(key, value), set("empty", ""), remove(fmt.Sprintf("%05d", n*10))})
		want[key], want["empty"] = value, ""
		delete(want, fmt.Sprintf("%05d", n*10))
		return s.Checkpoint()
	}
	require.NoError(t, compact(s))
	require.Equal(t, 7, n)
	require.Len(t, s.runs.newest().runs, 7)
	requireEqual(t, want, s)
	requireEqual(t, want, reopened(t, s, path))
}

// Somebody has put another file in the place of the database: it must not be overwritten.
func TestCompactLeavesAForeignFileAlone(t *testing.T) {
	w := watch(t)
	require.NoError(t, os.WriteFile(w.path+".foreign", []byte("foreign"), 0o644))
	require.NoError(t, os.Rename(w.path+".foreign", w.path))
	require.ErrorContains(t, compact(w.Store), "another file")
	b, err := os.ReadFile(w.path)
	require.NoError(t, err)
	require.Equal(t, "foreign", string(b))
}

func TestCompactThroughASymbolicLink(t *testing.T) {
	s, path := quiet(t, Options{Limit: 1 << 30})
	want := fillLoosely(t, s)
	link := filepath.Join(t.TempDir(), "link.kct")
	require.NoError(t, os.Symlink(path, link))
	require.NoError(t, s.closeFile())
	require.NoError(t, os.Chmod(path, 0o600))
	s = mustOpen(t, link, 1<<30)
	require.NoError(t, compact(s))
	requireEqual(t, want, s)
	require.NoError(t, s.Close())
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.Equal(t, os.ModeSymlink, info.Mode().Type(), "still a link")
	info, err = os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	s = mustOpen(t, path, 1<<30)
	requireEqual(t, want, s)
	require.NoError(t, s.Close())
}

// A clear makes the copy void, and the next try has little to copy.
func TestClearWhileAFileIsCompacted(t *testing.T) {
	for _, when := range []int{1, 2} { // after the records, after the versions
		s, path := quiet(t, Options{Limit: 1 << 30, LWW: true})
		fillLoosely(t, s)
		n := 0
		s.compactor.disk.step = func(name string) error {
			if name != "piece" {
				return nil
			}
			if n++; n != when {
				return nil
			}
			s.Apply(s.Meta().Stamp+1, []update.Update{{Op: update.OpClear}, set("a", "1")})
			return s.Checkpoint()
		}
		require.NoError(t, compact(s))
		want := map[string]string{"a": "1"}
		requireEqual(t, want, s)
		require.Less(t, s.FileSize(), int64(128<<10))
		requireEqual(t, want, reopened(t, s, path))
	}
}

// The copy begins while a clear is on its way to the disk.
func TestCompactWhileAClearIsBeingWritten(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 1 << 30})
	fillLoosely(t, s)
	write, on := writes(s), make(chan struct{})
	real := *write
	writing, flushed, copied := make(chan struct{}), make(chan error, 1), make(chan struct{}, 100)
	var once sync.Once
	s.compactor.disk.step = func(name string) error {
		once.Do(func() {
			s.Apply(s.Meta().Stamp+1, []update.Update{{Op: update.OpClear}, set("a", "1")})
			*write = func(b []byte, at int64) (int, error) {
				*write = real
				close(writing)
				<-on
				return real(b, at)
			}
			go func() { flushed <- s.Checkpoint() }()
			<-writing
			go func() {
				select {
				case <-copied:
				case <-time.After(200 * time.Millisecond): // nothing is copied, as it should be
				}
				close(on)
			}()
		})
		if name == "piece" {
			copied <- struct{}{}
			if err := <-flushed; err != nil {
				return err
			}
			flushed <- nil
		}
		return nil
	}
	require.NoError(t, compact(s))
	requireEqual(t, map[string]string{"a": "1"}, s)
}

func TestCompactGivesWayToClients(t *testing.T) {
	s, path := quiet(t, Options{Limit: 1 << 30})
	want := fillLoosely(t, s)
	n := 0
	s.compactor.disk.step = func(name string) error {
		for range int(mostDebt * mergeRuns) {
			n++
			s.Apply(s.Meta().Stamp+1, []update.Update{set("a", fmt.Sprint(n))})
			require.NoError(t, s.Checkpoint())
		}
		return nil
	}
	require.ErrorIs(t, compact(s), ErrCompactBehind)
	require.NoFileExists(t, path+copySuffix)
	want["a"] = fmt.Sprint(n)
	require.NoError(t, s.Merge(), "merges go on")
	require.Empty(t, s.runs.newest().runs)
	requireEqual(t, want, s)
}

// A backup under way reads on from the replaced file, and nobody else waits for it.
func TestFrozenSurvivesCompactions(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 1 << 30})
	want := fillLoosely(t, s)
	f, err := s.Freeze(func(take func()) { take() })
	require.NoError(t, err)
	require.NoError(t, compact(s))
	old := map[string]string{}
	for i := range 5 {
		s.Apply(s.Meta().Stamp+1, []update.Update{set(fmt.Sprint("new", i), "1")})
		require.NoError(t, s.Merge())
		require.NoError(t, compact(s))
	}
	require.NoError(t, f.Scan(false, func(key, value []byte) error {
		old[string(key)] = string(value)
		return nil
	}))
	require.Equal(t, want, old)
	closed := make(chan error, 1)
	go func() { closed <- s.closeFile() }()
	select {
	case <-closed:
		t.Fatal("closed while somebody reads")
	case <-time.After(50 * time.Millisecond):
	}
	require.NoError(t, f.Close())
	require.NoError(t, <-closed)
}

// An aborted compaction leaves nothing; one that ends with the process is begun again, once.
func TestCompactionsThatDoNotEnd(t *testing.T) {
	s, path := quiet(t, Options{Limit: 1 << 30})
	want := fillLoosely(t, s)
	s.compactor.disk.step = func(string) error { s.RunningCompaction().Abort(); return nil }
	require.ErrorIs(t, compact(s), ErrCompactAborted)
	require.NoFileExists(t, path+copySuffix)

	reached := make(chan struct{})
	s.compactor.disk.step = func(name string) error {
		if name == "begin" {
			return nil
		}
		close(reached)
		<-s.compactor.running().quit
		return nil
	}
	c, err := s.Compact(CompactOptions{})
	require.NoError(t, err)
	<-reached
	again, err := s.Compact(CompactOptions{})
	require.NoError(t, err)
	require.Same(t, c, again, "joined")
	require.NoError(t, s.Finish())
	require.ErrorIs(t, c.Err(), ErrCompactAborted)
	_, err = s.Compact(CompactOptions{})
	require.ErrorIs(t, err, errClosed)
	require.NoError(t, s.closeFile())
	info, err := os.Stat(path + copySuffix)
	require.NoError(t, err)
	require.Zero(t, info.Size(), "the space is given back")

	s = mustOpen(t, path, 1<<30)
	s.compactor.disk.step = func(name string) error {
		if name == "begin" { // there is no file yet
			return nil
		}
		<-s.compactor.running().quit
		return errDisk
	}
	c, err = s.ResumeCompaction(CompactOptions{})
	require.NoError(t, err)
	require.NotNil(t, c)
	require.Eventually(t, func() bool { _, err := os.Stat(path + againSuffix); return err == nil }, 10*time.Second, time.Millisecond)
	require.NoFileExists(t, path+copySuffix, "there is no third time if the process dies now")
	c.Abort()
	<-c.Done()
	require.Error(t, c.Err())
	require.NoFileExists(t, path+againSuffix)
	c, err = s.ResumeCompaction(CompactOptions{})
	require.NoError(t, err)
	require.Nil(t, c)

	s.compactor.disk.step = func(string) error { return nil }
	require.NoError(t, os.WriteFile(path+copySuffix, []byte("half a copy"), 0o644))
	c, err = s.ResumeCompaction(CompactOptions{Fast: true})
	require.NoError(t, err)
	<-c.Done()
	require.NoError(t, c.Err())
	require.NoFileExists(t, path+copySuffix)
	require.NoFileExists(t, path+againSuffix)
	requireEqual(t, want, s)
	require.NoError(t, s.Close())
}

// At no instant can anybody else lock the file that has the name.
func TestNobodyGetsTheLockOfACompactedFile(t *testing.T) {
	s, path := quiet(t, Options{Limit: 1 << 30})
	want := fillLoosely(t, s)
	var stop atomic.Bool
	var tries atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !stop.Load() {
				f, err := openLocked(path, true)
				tries.Add(1)
				if err != nil || f != nil {
					t.Errorf("opened: %v", err)
					return
				}
			}
		})
	}
	waiting := make(chan *Store, 1)
	go func() {
		began := time.Now()
		other, err := Open(path, Options{Limit: 1 << 30})
		for n := 1; errors.Is(err, ErrInUse) && n < 6 && time.Since(began) > time.Duration(n)*lockWait/2; n++ {
			other, err = Open(path, Options{Limit: 1 << 30}) // the compactions last longer than Open waits
		}
		if err != nil {
			t.Errorf("wait for the lock: %v", err)
		}
		waiting <- other
	}()
	for range 5 {
		before := tries.Load()
		require.NoError(t, compact(s))
		require.Eventually(t, func() bool { return tries.Load() > before }, 10*time.Second, time.Millisecond)
	}
	stop.Store(true)
	wg.Wait()
	s.Apply(s.Meta().Stamp+1, []update.Update{set("last", "1")})
	want["last"] = "1"
	require.NoError(t, s.Close())
	other := <-waiting
	require.NotNil(t, other)
	requireEqual(t, want, other)
	require.NoError(t, other.Close())
}

// Replaced files are closed: descriptors do not pile up, and the space is given back.
func TestCompactClosesWhatItReplaces(t *testing.T) {
	s, path := quiet(t, Options{Limit: 1 << 30})
	want := fillLoosely(t, s)
	for range 10 {
		require.NoError(t, compact(s))
		_, err := s.Count()
		require.NoError(t, err)
	}
	s.compactor.retired.Wait()
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	n := 0
	for _, fd := range fds {
		name, _ := os.Readlink(filepath.Join("/proc/self/fd", fd.Name()))
		if strings.HasPrefix(name, path) {
			n++
		}
	}
	require.Equal(t, 1, n)
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(maps, []byte(path)))
	requireEqual(t, want, s)
}
