package ulog

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
)

// hookFS calls before at the beginning of each ReadDir: a goroutine that loses the processor there.
type hookFS struct {
	vfs.OS
	before atomic.Pointer[func()]
}

func (fs *hookFS) ReadDir(name string) ([]string, error) {
	if f := fs.before.Swap(nil); f != nil {
		(*f)()
	}
	return fs.OS.ReadDir(name)
}

// While files are chosen for removal, writers put another group into the newest segment and begin
// the next one: it is judged by its real last stamp.
func TestRemoveFilesWhileSegmentsBegin(t *testing.T) {
	fs := &hookFS{}
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{Limit: 2000, FS: fs})
	defer l.Close()
	upTo := mustCommit(t, l, "checkpointed")
	i := 0
	write := func() {
		for seg := l.writer.end().seg; l.writer.end().seg == seg; i++ {
			mustCommit(t, l, fmt.Sprintf("new %04d", i))
		}
	}
	for _, remove := range []func(Stamp) error{l.RemoveFiles, l.ReclaimFiles} {
		fs.before.Store(&write)
		require.NoError(t, remove(upTo))
		require.Contains(t, readKeys(t, dir), "new 0000")
	}
	fs.before.Store(&write)
	files, err := l.Files()
	require.NoError(t, err)
	for _, f := range files {
		info, err := os.Stat(f.Path)
		require.NoError(t, err)
		require.Equal(t, info.Size(), f.Size, "%s is listed as it is", f.Path)
	}
}

func TestHolds(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	var text logText
	l := mustOpen(t, dir, Options{Limit: 1, Now: c.now, Logger: text.logger()})
	defer l.Close()
	var lasts []Stamp
	for _, k := range keys("k", 6) { // in segments 2 to 7
		c.add(time.Minute)
		lasts = append(lasts, mustCommit(t, l, k))
	}
	left := func() (n []uint64) {
		n, err := listSegments(vfs.OS{}, dir)
		require.NoError(t, err)
		return n
	}
	file := l.Hold(Holder{Kind: Database, What: "a.kct"}, lasts[0])
	follower := l.Hold(Holder{Kind: Follower, What: "the slave with sid=2", Weak: true}, lasts[2])
	need, err := l.Removable(maxStamp)
	require.NoError(t, err)
	require.Equal(t, lasts[4], need)
	need, err = l.Removable(lasts[1] + 1)
	require.NoError(t, err)
	require.Equal(t, lasts[1], need)

	require.NoError(t, l.RemoveFiles(maxStamp))
	require.Equal(t, []uint64{3, 4, 5, 6, 7}, left())
	require.Contains(t, text.String(), fmt.Sprintf("are needed for a.kct (from ts=%d), the slave with sid=2 (from ts=%d)", lasts[0], lasts[2]))
	files, err := l.Files()
	require.NoError(t, err)
	held := l.Holds(files)
	require.Len(t, held, 2)
	require.Equal(t, "a.kct", held[0].What)
	require.Equal(t, lasts[0], held[0].From)
	require.Greater(t, held[0].Bytes, held[1].Bytes)
	require.True(t, held[1].Weak)

	file.Advance(lasts[3])
	file.Advance(lasts[1])
	require.Equal(t, lasts[3], file.From(), "never back")
	require.NoError(t, l.RemoveFiles(maxStamp))
	require.Equal(t, []uint64{5, 6, 7}, left())
	require.NoError(t, l.ReclaimFiles(maxStamp))
	require.Equal(t, []uint64{6, 7}, left(), "without the follower")
	r, err := l.NewReader(follower.From())
	require.NoError(t, err)
	require.Error(t, r.Lost(), "which is told")
	require.NoError(t, r.Close())
	file.Release()
	follower.Linger(time.Minute)
	require.NoError(t, l.RemoveFiles(maxStamp))
	require.Equal(t, []uint64{6, 7}, left())
	c.add(time.Hour)
	require.NoError(t, l.RemoveFiles(maxStamp))
	require.Equal(t, []uint64{7}, left(), "a hold that lingers ends")
	require.Empty(t, l.Holds(nil))
	file.Release()
	var none *Hold
	none.Advance(1)
	none.Linger(time.Second)
	none.Release()
	require.Equal(t, Stamp(maxStamp), none.From())
}

// A segment that is too damaged to be listed goes with the next one, and not before.
func TestDamagedSegmentsAreRemovedWithTheNext(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	l := mustOpen(t, dir, Options{Limit: 1, Now: c.now})
	defer l.Close()
	var lasts []Stamp
	for _, k := range keys("k", 4) { // in segments 2 to 5
		c.add(time.Minute)
		lasts = append(lasts, mustCommit(t, l, k))
	}
	require.NoError(t, os.Truncate(l.segmentPath(3), 0))
	require.NoError(t, os.Truncate(l.segmentPath(4), 3))
	require.NoError(t, os.WriteFile(dir+"/notes", nil, filePerm))
	require.NoError(t, l.RemoveFiles(maxStamp))
	require.FileExists(t, l.segmentPath(4), "the next one is being written")
	mustCommit(t, l, "another")
	require.NoError(t, l.RemoveFiles(lasts[2]))
	require.FileExists(t, l.segmentPath(3))
	require.NoError(t, l.RemoveFiles(lasts[3]))
	nums, err := listSegments(vfs.OS{}, dir)
	require.NoError(t, err)
	require.Equal(t, []uint64{6}, nums)
	require.FileExists(t, dir+"/notes")
}

// Holders come and go while files are removed: what a hold keeps from the moment at which it was
// registered is there until it is released.
func TestHoldsAndRemovalsAtOnce(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{Limit: 300, SyncInterval: time.Hour})
	defer l.Close()
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if err := l.RemoveFiles(maxStamp); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for i := range 150 {
		from := l.Last()
		h := l.Hold(Holder{Kind: Copy, What: "a reader"}, from)
		mustCommit(t, l, keys(fmt.Sprint(i), 5)...)
		r, err := l.NewReader(from)
		require.NoError(t, err)
		for n := range 5 {
			e, err := r.Next()
			require.NoError(t, err)
			require.Contains(t, string(e.Message), fmt.Sprintf("%d%04d", i, n))
		}
		require.NoError(t, r.Lost())
		require.NoError(t, r.Close())
		h.Release()
	}
	close(done)
	wg.Wait()
}

// A holder that has gone without a word does not keep files.
func TestHoldsEndWithTheirHolders(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{Limit: 1})
	defer l.Close()
	gone := false
	l.Hold(Holder{Kind: Follower, What: "the slave with sid=2", Weak: true}, 0).EndsWith(func() bool { return gone })
	mustCommit(t, l, "a")
	mustCommit(t, l, "b")
	files := func() int {
		all, err := l.Files()
		require.NoError(t, err)
		return len(all)
	}
	require.NoError(t, l.RemoveFiles(maxStamp))
	require.Equal(t, 3, files())
	gone = true
	require.NoError(t, l.RemoveFiles(maxStamp))
	require.Equal(t, 1, files())
	require.Empty(t, l.Holds(nil))
}
