package ulog

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
)

// removeSegments removes files as people do, behind the back of the log.
func removeSegments(t *testing.T, dir string, nums ...uint64) {
	t.Helper()
	for _, n := range nums {
		require.NoError(t, os.Remove(filepath.Join(dir, segmentName(n))))
	}
}

// requireGap reads until a gap, which must come before io.EOF, and again and again.
func requireGap(t *testing.T, r *Reader, first, last uint64) *GapError {
	t.Helper()
	var err error
	for err == nil {
		_, err = r.Next()
	}
	var gap *GapError
	require.ErrorAs(t, err, &gap)
	require.Equal(t, []uint64{first, last}, []uint64{gap.First, gap.Last}, gap.Error())
	_, again := r.Next()
	require.Same(t, gap, again)
	require.Same(t, gap, r.Lost())
	require.Empty(t, r.Tail(nil))
	n, _ := r.Skip(7, true)
	require.Zero(t, n)
	return gap
}

// atEnd reads to the end of the log and returns how many records came.
func atEnd(t *testing.T, r *Reader) (n int) {
	t.Helper()
	for {
		_, err := r.Next()
		if errors.Is(err, io.EOF) {
			return n
		}
		require.NoError(t, err)
		n++
	}
}

// tick writes a group without a record, as the stamp of a snapshot does.
func tick(t *testing.T, l *Log) Stamp {
	t.Helper()
	at := l.Tick()
	require.NoError(t, l.Wait(at))
	return at
}

// A reader at the end of the log must not pass over segments that were written and removed since,
// whatever the newest one begins with.
func TestGapWhereTheNewestSegmentBeginsWithoutAnUpdate(t *testing.T) {
	begin := map[string]func(t *testing.T, l *Log){
		"an update": func(t *testing.T, l *Log) { mustCommit(t, l, "new") },
		"a tick":    func(t *testing.T, l *Log) { tick(t, l) },
		"a note": func(t *testing.T, l *Log) {
			at, err := l.AppendReplicated(nil, &Position{State: []byte("state")})
			require.NoError(t, err)
			require.NoError(t, l.Wait(at))
		},
	}
	for name, f := range begin {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := mustOpen(t, dir, Options{Limit: 150})
			defer l.Close()
			mustCommit(t, l, "seen")
			live, err := l.NewReader(0)
			require.NoError(t, err)
			defer live.Close()
			other, err := OpenReader(vfs.OS{}, dir, 0, ReaderOptions{})
			require.NoError(t, err)
			defer other.Close()
			require.Equal(t, 1, atEnd(t, live))
			require.Equal(t, 1, atEnd(t, other))

			seg := l.safeTail().seg
			var lost Stamp
			for l.safeTail().seg < seg+3 {
				lost = mustCommit(t, l, "lost")
			}
			for l.safeTail().off < 150 { // the next group begins a segment
				lost = mustCommit(t, l, "lost")
			}
			f(t, l)
			require.Equal(t, seg+4, l.safeTail().seg)
			removeSegments(t, dir, seg+1, seg+2, seg+3)
			for _, r := range []*Reader{live, other} {
				gap := requireGap(t, r, seg+1, seg+3)
				require.Equal(t, lost, gap.To)
				require.Less(t, gap.From, gap.To)
				require.Equal(t, gap.To, r.Begins())
				r.SkipGap()
				atEnd(t, r)
			}
			mustCommit(t, l, "after")
			for _, r := range []*Reader{live, other} {
				require.Equal(t, 1, atEnd(t, r))
			}
		})
	}
}

// Removed segments are no gap for a reader that has the newest record which was in them.
func TestRemovedSegmentsWithoutAnythingNewAreNoGap(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{Limit: 1})
	defer l.Close()
	last := mustCommit(t, l, "a", "b", "c") // in segments 2 to 4
	r, err := l.NewReader(0)
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, 3, atEnd(t, r))
	removeSegments(t, dir, 1, 2, 3, 4)
	mustCommit(t, l, "d")
	require.Equal(t, 1, atEnd(t, r))

	fresh, err := l.NewReader(last)
	require.NoError(t, err)
	defer fresh.Close()
	require.NoError(t, fresh.Lost())
	require.Equal(t, 1, atEnd(t, fresh))
}

// The segment that a reader begins with may have an older one in front, whose header ends before,
// and others between the two that are gone.
func TestGapInFrontOfTheFirstSegment(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	l := mustOpen(t, dir, Options{Limit: 1, Now: c.now})
	defer l.Close()
	var stamps []Stamp
	for _, k := range keys("k", 5) { // in segments 2 to 6
		c.add(time.Minute)
		stamps = append(stamps, mustCommit(t, l, k))
	}
	removeSegments(t, dir, 4)
	after := stamps[1] + Stamp(10*time.Second) // segment 3 ends long before
	r, err := l.NewReader(after)
	require.NoError(t, err)
	defer r.Close()
	gap := requireGap(t, r, 4, 4)
	require.Equal(t, []Stamp{after, stamps[2]}, []Stamp{gap.From, gap.To})
	r.SkipGap()
	require.Equal(t, 2, atEnd(t, r))
}

// A log goes on writing to a file that somebody has removed. What is in there will never be read.
func TestGapOfTheRemovedNewestSegment(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{Limit: 1})
	defer l.Close()
	mustCommit(t, l, "a")
	r, err := l.NewReader(0)
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, 1, atEnd(t, r))
	mustCommit(t, l, "b") // in segment 3
	removeSegments(t, dir, 3)
	requireGap(t, r, 3, 3)
	r.SkipGap()
	require.Zero(t, atEnd(t, r))
	mustCommit(t, l, "c")
	require.Equal(t, 1, atEnd(t, r), "in segment 4, behind what is known to be lost")
}

// A reader of a directory without segments has read nothing, so the first segment it finds must be
// the log's first.
func TestGapInFrontOfAReaderOfAnEmptyDirectory(t *testing.T) {
	dir := t.TempDir()
	r, err := OpenReader(vfs.OS{}, dir, 0, ReaderOptions{})
	require.NoError(t, err)
	defer r.Close()
	require.Zero(t, atEnd(t, r))
	fill(t, dir, Options{Limit: 1}, "a", "b")
	removeSegments(t, dir, 1, 2)
	requireGap(t, r, 1, 2)
}

// While a log goes over to the next segment the header of the full one still promises stamps that
// no record of it has. A reader in another process that looks then has the records, not what was
// promised.
func TestGapBehindASegmentThatPromises(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{Limit: 150})
	for i := range 5 {
		mustCommit(t, l, keys(string(rune('a'+i)), 3)...)
	}
	require.NoError(t, l.Close())
	head, _, err := statSegment(vfs.OS{}, dir, 1)
	require.NoError(t, err)
	f, err := os.OpenFile(filepath.Join(dir, segmentName(1)), os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(encodeHeader(header{head.size, l.Last() + promiseAhead}), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	r, err := OpenReader(vfs.OS{}, dir, 0, ReaderOptions{})
	require.NoError(t, err)
	defer r.Close()
	for r.seg < 2 {
		_, err := r.Next()
		require.NoError(t, err)
	}
	removeSegments(t, dir, 3)
	requireGap(t, r, 3, 3)
}
