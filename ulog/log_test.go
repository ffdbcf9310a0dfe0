package ulog

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
)

func TestAppendWaitRead(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	u := Update{SID: 7, DBID: 3, Op: OpRemove, Key: []byte("gone")}
	s, err := l.Append([]Update{set("kept"), u, {SID: 7, Op: OpClear}})
	require.NoError(t, err)
	require.NoError(t, l.Wait(s))
	require.NoError(t, l.Close())

	all, _, _ := drain(t, dir, 0)
	kept := set("kept")
	require.Equal(t, []got{
		{s - 2, string(AppendMessage(nil, &kept))},
		{s - 1, "\x00\x07\x00\x03\xa2\x04gone"},
		{s, "\x00\x07\x00\x00\xa5"},
	}, all)
}

func TestAppendRefuses(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{})
	before := l.Last()
	_, err := l.Append([]Update{set("a"), {DBID: 0xFFFF, Op: 0xA0}})
	require.ErrorIs(t, err, errReservedDB)
	s, err := l.Append(nil)
	require.NoError(t, err)
	require.Equal(t, before, s)
	require.Equal(t, before, l.Last(), "a refused Append takes no stamp")
	require.Zero(t, l.Bytes())
	mustAppend(t, l, "a")
	u := set("a")
	require.Equal(t, int64(frameSize+messageSize(&u)), l.Bytes())
	require.NoError(t, l.Close())

	_, err = l.Append(sets("b"))
	require.ErrorIs(t, err, errClosed)
	require.ErrorIs(t, l.Close(), errClosed)
	require.NoError(t, l.Wait(l.Last()))
	require.NoError(t, l.SyncTo(l.Last()))
}

// TestFileBytes draws a small segment byte by byte.
func TestFileBytes(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	l := mustOpen(t, dir, Options{Now: c.now})
	c.add(time.Millisecond)
	s, err := l.Append([]Update{{SID: 7, DBID: 1, Op: OpRemove, Key: []byte("k")}})
	require.NoError(t, err)
	require.NoError(t, l.Wait(s))
	require.NoError(t, l.Close())
	b, err := os.ReadFile(filepath.Join(dir, "0000000001.ulog"))
	require.NoError(t, err)

	begin, record := fmt.Sprintf("%016x", uint64(s-1_000_000)), fmt.Sprintf("%016x", uint64(s))
	want := "a0" + fmt.Sprintf("%016x", len(b)) + record +
		"a1" + begin + "0000000e" + "0000ffffa001" + "CRC....." + "00000000" + "a2" +
		"a1" + record + "00000007" + "00070001a2016b" + "a2" +
		"a1" + record + "0000000e" + "0000ffffa001" + "CRC....." + "00000001" + "a2"
	have := fmt.Sprintf("%x", b)
	for i := strings.Index(want, "CRC....."); i >= 0; i = strings.Index(want, "CRC.....") {
		want = want[:i] + have[i:i+8] + want[i+8:]
	}
	require.Equal(t, want, have)
}

func TestStampsFollowTheClock(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	l := mustOpen(t, dir, Options{Now: c.now})
	base := StampAt(c.now())
	require.Equal(t, base, l.Last(), "the commit record that begins the log")
	c.add(time.Millisecond)
	base += 1_000_000
	require.Equal(t, base+2, mustAppend(t, l, "a", "b", "c"))
	require.Equal(t, base+3, l.Tick())
	c.add(-time.Hour)
	require.Equal(t, base+4, mustAppend(t, l, "d"))
	c.add(time.Hour + 2*time.Millisecond)
	require.Equal(t, base+2_000_000, mustAppend(t, l, "e"))
	require.NoError(t, l.Close())

	c.add(-time.Hour)
	l = mustOpen(t, dir, Options{Now: c.now})
	require.Equal(t, base+2_000_001, mustAppend(t, l, "f"), "also after the log was opened again")
	require.NoError(t, l.Close())
}

// TestTickSurvives takes a stamp without a record: it is not given out again, even with the clock
// set back.
func TestTickSurvives(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	l := mustOpen(t, dir, Options{Now: c.now})
	c.add(time.Hour)
	s := l.Tick()
	require.NoError(t, l.Wait(s))
	require.NoError(t, l.Close())
	c.add(-time.Hour)
	l = mustOpen(t, dir, Options{Now: c.now})
	require.Equal(t, s, l.Last())
	require.NoError(t, l.Close())
	require.Empty(t, readKeys(t, dir))
}

// TestStampsFromOlderHeaders begins behind the largest stamp of all segments, when the newest is
// empty: the one in between marks the gap.
func TestStampsFromOlderHeaders(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	l := mustOpen(t, dir, Options{Now: c.now})
	last := mustCommit(t, l, "a")
	require.NoError(t, l.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, segmentName(2)), nil, filePerm))
	c.add(-time.Hour)
	l = mustOpen(t, dir, Options{Now: c.now})
	require.Equal(t, last+2, mustAppend(t, l, "b"))
	require.NoError(t, l.Close())
	all, _, reports := drain(t, dir, 0)
	require.Equal(t, []string{"a", "b"}, keysOf(t, all))
	require.NotEmpty(t, reports)
}

// TestStampsFromTheTail reads the last stamp from the records when the header lags, and refuses one
// that cannot be.
func TestStampsFromTheTail(t *testing.T) {
	s := newSample(t)
	copy(s.b, encodeHeader(header{s.ends[0], 1}))
	c := newClock()
	c.add(-time.Hour)
	l := mustOpen(t, s.write(t), Options{Now: c.now})
	require.Greater(t, l.Last(), StampAt(newClock().now()))
	require.NoError(t, l.Close())

	u := set("far")
	b := encodeHeader(header{size: headerSize})
	s.b = appendRecord(b, 1<<63+5, &u)
	s.tell()
	_, err := Open(s.write(t), Options{})
	var damage *DamageError
	require.ErrorAs(t, err, &damage)
}

func TestRotation(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{Limit: 300})
	ks := keys("k", 40)
	for _, k := range ks {
		require.NoError(t, l.Wait(mustAppend(t, l, k+"-1", k+"-2")))
	}
	files, err := l.Files()
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.Greater(t, len(files), 10)
	for i, f := range files {
		h, size, err := statSegment(vfs.OS{}, dir, uint64(i)+1)
		require.NoError(t, err)
		require.Equal(t, FileInfo{dir + "/" + segmentName(uint64(i)+1), size, h.last}, f, "what Files says is in the header after Close")
		require.Equal(t, h.size, size)
		if i < len(files)-1 {
			require.GreaterOrEqual(t, size, int64(300))
			require.Less(t, size, int64(300+200), "by one group at most")
		}
	}
	all := readKeys(t, dir)
	require.Len(t, all, 2*len(ks))
	require.True(t, slices.IsSorted(all))
}

func TestNoLimit(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, Options{Limit: -1}, keys("k", 20)...)
	nums, err := listSegments(vfs.OS{}, dir)
	require.NoError(t, err)
	require.Equal(t, []uint64{1}, nums)
}

// TestRotationOrder looks at the disk whenever the log syncs: an older segment is complete, with
// its final header, before the next one exists, and no header is ever ahead of what was synced.
func TestRotationOrder(t *testing.T) {
	dir, fs := t.TempDir(), faultfs.New(vfs.OS{})
	l := mustOpen(t, dir, Options{Limit: 200, FS: fs})
	check := func() {
		nums, err := listSegments(vfs.OS{}, dir)
		require.NoError(t, err)
		for _, n := range nums[:len(nums)-1] {
			h, size, err := statSegment(vfs.OS{}, dir, n)
			require.NoError(t, err)
			require.Equal(t, size, h.size)
		}
	}
	fs.OnSync(check)
	mustCommit(t, l, keys("k", 20)...)
	fs.OnSync(nil)
	require.NoError(t, l.Close())
}

func TestFilesAndRemove(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	l := mustOpen(t, dir, Options{Limit: 1, Now: c.now})
	var lasts []Stamp
	for _, k := range []string{"a", "b", "c"} {
		c.add(time.Hour)
		lasts = append(lasts, mustCommit(t, l, k))
	}
	require.NoError(t, os.WriteFile(dir+"/odd", encodeHeader(header{17, 3}), filePerm))
	require.NoError(t, os.WriteFile(dir+"/other", []byte("not a segment, but long enough"), filePerm))
	names := func() (names []string) {
		files, err := l.Files()
		require.NoError(t, err)
		for _, f := range files {
			names = append(names, strings.TrimPrefix(f.Path, dir+"/"))
		}
		return names
	}
	require.Equal(t, []string{segmentName(1), segmentName(2), segmentName(3), segmentName(4), "odd"}, names())
	r, err := l.NewReader(0)
	require.NoError(t, err)
	_, err = r.Next()
	require.NoError(t, err, "a, in segment 2")
	require.NoError(t, l.RemoveFiles(lasts[0]))
	require.Equal(t, []string{segmentName(3), segmentName(4), "odd"}, names())
	for _, key := range []string{"b", "c"} {
		e, err := r.Next()
		require.NoError(t, err)
		require.Contains(t, string(e.Message), key)
	}
	_, err = r.Next()
	require.Equal(t, io.EOF, err)
	require.NoError(t, r.Close())

	require.NoError(t, l.RemoveFiles(1<<63))
	require.Equal(t, []string{segmentName(4), "odd"}, names(), "never the last name, never the current segment")
	mustCommit(t, l, "d")
	require.NoError(t, l.Close())
	require.FileExists(t, dir+"/other")
	require.FileExists(t, filepath.Join(dir, identityName))
}

func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	id := l.ID()
	require.NotZero(t, id)
	require.Equal(t, dir, l.Dir())
	require.NoError(t, l.Close())
	l = mustOpen(t, dir, Options{})
	require.Equal(t, id, l.ID())
	require.NoError(t, l.Close())
	other := mustOpen(t, t.TempDir(), Options{})
	require.NotEqual(t, id, other.ID())
	require.NoError(t, other.Close())

	require.NoError(t, os.WriteFile(filepath.Join(dir, identityName), []byte("short"), filePerm))
	_, err := Open(dir, Options{})
	require.ErrorContains(t, err, identityName)
}

// hasty is a file system that does not wait for locks.
type hasty struct{ vfs.OS }

func (h hasty) Lock(f vfs.File, _ time.Duration) error { return h.OS.Lock(f, 0) }

func TestLock(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{Limit: 100})
	var text logText
	_, err := Open(dir, Options{FS: hasty{}, Logger: text.logger()})
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.Contains(t, text.String(), "waiting for another process")
	mustCommit(t, l, "a", "b", "c")
	r, err := l.NewReader(0)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, err = Open(dir, Options{FS: hasty{}})
	require.ErrorIs(t, err, vfs.ErrLocked, "also in the next segment, and after a reader was closed")
	require.NoError(t, l.Close())
	require.NoError(t, mustOpen(t, dir, Options{FS: hasty{}}).Close())
}

// TestLockWaits opens a log that another has open; when the other has gone on to a new segment
// meanwhile, that is the one to continue.
func TestLockWaits(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{Limit: 100})
	var text logText
	opened := make(chan *Log)
	go func() {
		second, err := Open(dir, Options{Logger: text.logger()})
		if err != nil {
			t.Error(err)
		}
		opened <- second
	}()
	within(t, "the second waits", func() bool { return strings.Contains(text.String(), "waiting") })
	mustCommit(t, l, "a", "b", "c")
	require.NoError(t, l.Close())
	second := <-opened
	mustCommit(t, second, "d")
	require.NoError(t, second.Close())
	require.Equal(t, []string{"a", "b", "c", "d"}, readKeys(t, dir))
}

func TestOpenFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, filePerm))
	_, err := Open(file, Options{})
	require.Error(t, err)
	_, err = Open(filepath.Join(file, "below"), Options{})
	require.Error(t, err)
}

// TestConcurrent has writers with bulks of several sizes, waiting or not, and readers that follow,
// over rotations and in both modes. Every bulk is whole, in order, and its stamps are consecutive.
func TestConcurrent(t *testing.T) {
	for _, each := range []bool{false, true} {
		t.Run(fmt.Sprintf("SyncEach=%v", each), func(t *testing.T) {
			dir := t.TempDir()
			l := mustOpen(t, dir, Options{Limit: 20_000, SyncEach: each})
			var writers, readers sync.WaitGroup
			const perWriter = 150
			for w := range 16 {
				writers.Go(func() { writeBulks(t, l, w, perWriter) })
			}
			want := 0
			for i := range perWriter {
				want += 16 * bulkSize(i)
			}
			for range 3 {
				readers.Go(func() { followBulks(t, l, want) })
			}
			writers.Wait()
			readers.Wait()
			require.NoError(t, l.Close())
			require.Len(t, readKeys(t, dir), want)
		})
	}
}

func bulkSize(i int) int { return 1 + i%4 }

func writeBulks(t *testing.T, l *Log, w, n int) {
	for i := range n {
		var ks []string
		for j := range bulkSize(i) {
			ks = append(ks, fmt.Sprintf("%d.%d.%d", w, i, j))
		}
		s, err := l.Append(sets(ks...))
		if err == nil && i%5 > 0 || i == n-1 {
			err = l.Wait(s)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// followBulks reads want records and checks that each writer's arrive in order and each bulk in one
// piece.
func followBulks(t *testing.T, l *Log, want int) {
	r, err := l.NewReader(0)
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Close()
	next := map[int]int{} // by writer
	var last Stamp
	for n := 0; n < want; {
		w, i, j := -1, 0, 0
		for w < 0 || j < bulkSize(i)-1 {
			e, err := nextOrWait(t.Context(), r)
			if err != nil {
				t.Error(err)
				return
			}
			u, err := ParseMessage(e.Message)
			if err != nil {
				t.Error(err)
			}
			pw, pi, pj := w, i, j
			fmt.Sscanf(string(u.Key), "%d.%d.%d", &w, &i, &j)
			begins := pw < 0 && j == 0 && i == next[w]
			goesOn := pw == w && pi == i && pj+1 == j && e.Stamp == last+1
			if !begins && !goesOn || e.Stamp <= last {
				t.Errorf("%s after %d.%d.%d, stamp %d after %d", u.Key, pw, pi, pj, e.Stamp, last)
				return
			}
			last = e.Stamp
			n++
		}
		next[w]++
	}
}

// TestNobodyWaits has records written and synced, and the header updated, though nobody waits for
// them.
func TestNobodyWaits(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{SyncInterval: time.Millisecond})
	s := mustAppend(t, l, "a")
	within(t, "the header tells of the record", func() bool {
		h, _, err := statSegment(vfs.OS{}, dir, 1)
		return err == nil && h.last == s
	})
	require.Equal(t, []string{"a"}, readKeys(t, dir))
	require.NoError(t, l.Close())
}

// TestMuchPending has a large buffer written though nobody waits and the interval is long.
func TestMuchPending(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{SyncInterval: time.Hour})
	big := Update{Op: OpSet, Key: []byte("big"), Value: make([]byte, kickSize+1)}
	s, err := l.Append([]Update{big})
	require.NoError(t, err)
	within(t, "the record is written", func() bool { return l.safeTail().last >= s })
	require.NoError(t, l.Close())
	require.Equal(t, []string{"big"}, readKeys(t, dir))
}

// TestIdle does not sync when nothing was written.
func TestIdle(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	l := mustOpen(t, t.TempDir(), Options{FS: fs, SyncInterval: time.Millisecond})
	s := mustCommit(t, l, "a")
	within(t, "the record is synced", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.synced.last >= s
	})
	syncs := fs.Syncs()
	for range 20 {
		require.NoError(t, l.writer.tidy(true))
	}
	require.Equal(t, syncs, fs.Syncs())
	require.NoError(t, l.SyncTo(s))
	require.Equal(t, syncs, fs.Syncs())
	require.NoError(t, l.Close())
}

// TestSyncDoesNotBlock holds an interval sync up: in the default mode writers go on.
func TestSyncDoesNotBlock(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	l := mustOpen(t, t.TempDir(), Options{FS: fs, SyncInterval: time.Millisecond})
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	fs.OnSync(func() { once.Do(func() { close(entered) }); <-release })
	mustCommit(t, l, "a")
	<-entered
	mustCommit(t, l, keys("k", 100)...)
	close(release)
	require.NoError(t, l.Close())
}

// TestGroupsForm holds the first group's sync up: the records appended meanwhile are written
// together.
func TestGroupsForm(t *testing.T) {
	dir, fs := t.TempDir(), faultfs.New(vfs.OS{})
	l := mustOpen(t, dir, Options{FS: fs, SyncEach: true, SyncInterval: time.Hour})
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	fs.OnSync(func() { once.Do(func() { close(entered); <-release }) })
	var wg sync.WaitGroup
	commit := func(k string) {
		wg.Go(func() {
			s, err := l.Append(sets(k))
			if err == nil {
				err = l.Wait(s)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	commit("first")
	<-entered
	writes := fs.Writes()
	for _, k := range keys("k", 50) {
		commit(k)
	}
	within(t, "all are appended", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.pending.count == 50
	})
	close(release)
	wg.Wait()
	require.Equal(t, writes+1, fs.Writes())
	require.NoError(t, l.Close())
	require.Len(t, readKeys(t, dir), 51)
}

// TestBigGroup writes and reads a group larger than any buffer.
func TestBigGroup(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	var ups []Update
	for i := range 100 {
		ups = append(ups, Update{Op: OpSet, Key: []byte{byte(i)}, Value: bytes.Repeat([]byte{byte(i)}, 5*windowSize/90)})
	}
	ups = append(ups, Update{Op: OpSet, Value: make([]byte, 3*windowSize)})
	s, err := l.Append(ups)
	require.NoError(t, err)
	require.NoError(t, l.Wait(s))
	require.NoError(t, l.Close())
	all, damage, _ := drain(t, dir, 0)
	require.Empty(t, damage)
	require.Equal(t, len(ups), len(all))
	for i := range all {
		require.Equal(t, string(AppendMessage(nil, &ups[i])), all[i].msg)
	}
	require.NoError(t, mustOpen(t, dir, Options{}).Close())
}
