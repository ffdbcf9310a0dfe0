package ulog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
)

// minutes makes a log with an update in each of segments 2 to n+1, a minute apart, and returns the
// stamps of the updates.
func minutes(t *testing.T, l *Log, c *clock, n int) (lasts []Stamp) {
	t.Helper()
	for _, k := range keys("k", n) {
		c.add(time.Minute)
		lasts = append(lasts, mustCommit(t, l, k))
	}
	return lasts
}

func left(t *testing.T, l *Log) int {
	t.Helper()
	files, err := l.Files()
	require.NoError(t, err)
	return len(files)
}

// Each limit alone has segments removed, from the oldest on, and never the newest.
func TestBeyond(t *testing.T) {
	c := newClock()
	l := mustOpen(t, t.TempDir(), Options{Limit: 1, Now: c.now})
	defer l.Close()
	lasts := minutes(t, l, c, 5) // and segment 1 without any: six segments
	files, err := l.Files()
	require.NoError(t, err)
	all, size := int64(0), files[2].Size
	for _, f := range files {
		all += f.Size
	}
	for _, of := range []struct {
		limits Limits
		want   Stamp
	}{
		{Limits{}, 0},
		{Limits{Age: time.Hour}, 0},
		{Limits{Age: 150 * time.Second}, lasts[1]},
		{Limits{Age: time.Nanosecond}, lasts[3]},
		{Limits{Count: 6}, 0},
		{Limits{Count: 3}, lasts[1]},
		{Limits{Count: 1}, lasts[3]},
		{Limits{Size: all}, 0},
		{Limits{Size: all - files[0].Size}, files[0].Last},
		{Limits{Size: 2*size + size/2}, lasts[2]},
		{Limits{Size: 1}, lasts[3]},
		{Limits{Age: 150 * time.Second, Count: 5, Size: all}, lasts[1]},
		{Limits{Age: time.Hour, Count: 3, Size: all}, lasts[1]},
	} {
		got, err := l.Beyond(of.limits)
		require.NoError(t, err)
		require.Equal(t, of.want, got, "%+v", of.limits)
	}
}

// A weak hold keeps no more than it may. When a removal takes what its holder needs, the log says
// so, once, with the name.
func TestAHoldWithABound(t *testing.T) {
	c := newClock()
	var text logText
	l := mustOpen(t, t.TempDir(), Options{Limit: 1, Now: c.now, Logger: text.logger()})
	defer l.Close()
	files, err := l.Files()
	require.NoError(t, err)
	lasts := minutes(t, l, c, 2)
	few := l.Hold(Holder{Kind: Follower, What: "the slave with sid=2", Key: "2@h", Weak: true, Most: 2 * files[0].Size}, lasts[0])
	defer few.Release()
	many := l.Hold(Holder{Kind: Follower, What: "the slave with sid=3", Key: "3@h", Weak: true, Most: 1 << 30}, lasts[0])
	require.NoError(t, l.RemoveFiles(maxStamp))
	require.Equal(t, 1, left(t, l), "the newest has what they need")
	minutes(t, l, c, 4)
	require.NoError(t, l.RemoveFiles(maxStamp))
	require.Equal(t, 5, left(t, l))
	require.NotContains(t, text.String(), "not kept any more")
	many.Release()
	for range 3 {
		minutes(t, l, c, 4)
		require.NoError(t, l.RemoveFiles(maxStamp))
		require.Equal(t, 1, left(t, l))
	}
	require.Equal(t, 1, strings.Count(text.String(), "is not kept any more for the slave with sid=2"))
	require.Contains(t, text.String(), "it will fetch a copy of the databases")

	few.Advance(l.Last())
	minutes(t, l, c, 1)
	require.NoError(t, l.RemoveFiles(maxStamp))
	require.Equal(t, 1, left(t, l))
}

// A follower that is away is held for a time. A removal that takes what it needs afterwards says so.
func TestAFollowerThatStaysAwayIsTold(t *testing.T) {
	c := newClock()
	var text logText
	l := mustOpen(t, t.TempDir(), Options{Limit: 1, Now: c.now, Logger: text.logger()})
	defer l.Close()
	lasts := minutes(t, l, c, 2)
	l.Hold(Holder{Kind: Follower, What: "the slave with sid=2", Key: "2@h", Weak: true}, lasts[0]).Leave(time.Hour)
	minutes(t, l, c, 3)
	require.NoError(t, l.RemoveFiles(maxStamp))
	require.Equal(t, 4, left(t, l))
	c.add(time.Hour)
	require.Empty(t, l.Holds(nil))
	require.NoError(t, l.RemoveFiles(lasts[0]))
	require.NotContains(t, text.String(), "not kept any more", "it lacks nothing yet")
	for range 2 {
		require.NoError(t, l.RemoveFiles(maxStamp))
		minutes(t, l, c, 1)
	}
	require.Equal(t, 1, strings.Count(text.String(), "is not kept any more for the slave with sid=2, which has gone and may come back"))

	l.Hold(Holder{Kind: Follower, What: "the slave with sid=2", Key: "2@h"}, l.Last()).Leave(time.Hour)
	require.Len(t, l.Holds(nil), 1)
	other := l.Hold(Holder{Kind: Follower, What: "the slave with sid=2", Key: "2@other"}, 0)
	require.Len(t, l.Holds(nil), 2)
	other.Release()
	back := l.Hold(Holder{Kind: Follower, What: "the slave with sid=2", Key: "2@h"}, 0)
	require.Len(t, l.Holds(nil), 1, "it has come back")
	back.Release()
}

// A pin keeps the log across restarts, until it is released or its time is over. A new pin takes the
// place of that with its name.
func TestPins(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	var text logText
	open := func() *Log {
		return mustOpen(t, dir, Options{Limit: 1, Now: c.now, Logger: text.logger()})
	}
	l := open()
	lasts := minutes(t, l, c, 5)
	pin, err := l.Pin("nightly", &lasts[1], time.Hour)
	require.NoError(t, err)
	require.Equal(t, lasts[1], pin.From)
	_, err = l.Pin("archive", nil, time.Minute)
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, l.RemoveFiles(maxStamp))
		require.NoError(t, l.ReclaimFiles(maxStamp))
		r, err := l.NewReader(lasts[1])
		require.NoError(t, err)
		require.NoError(t, r.Lost())
		require.NoError(t, r.Close())
		files, err := l.Files()
		require.NoError(t, err)
		holds := l.Holds(files)
		require.Len(t, holds, 2)
		require.Equal(t, "the hold nightly", holds[0].What)
		require.Equal(t, pin.Until.UnixNano(), holds[0].Until.UnixNano())
		require.Equal(t, pin.Since.UnixNano(), holds[0].Since.UnixNano())
		require.Positive(t, holds[0].Bytes)
		require.NoError(t, l.Close())
		l = open()
	}
	again, err := l.Pin("nightly", nil, 2*time.Hour)
	require.NoError(t, err)
	require.Equal(t, lasts[1], again.From, "renewed")
	again, err = l.Pin("nightly", &lasts[2], 2*time.Hour)
	require.NoError(t, err)
	require.Equal(t, lasts[2], again.From)
	require.Len(t, l.Holds(nil), 2)
	there, err := l.Unpin("nightly")
	require.NoError(t, err)
	require.True(t, there)
	there, err = l.Unpin("nightly")
	require.NoError(t, err)
	require.False(t, there)
	require.NoError(t, l.Close())
	l = open()
	require.Len(t, l.Holds(nil), 1, "it does not come back")

	minutes(t, l, c, 2)
	require.Empty(t, l.Holds(nil), "the time of archive is over")
	require.NoError(t, l.RemoveFiles(maxStamp))
	require.Equal(t, 1, left(t, l))
	require.Contains(t, text.String(), "is not kept any more for the hold archive")
	late, err := l.Pin("archive", nil, time.Hour)
	require.NoError(t, err)
	require.Equal(t, l.Last(), late.From)
	require.NoError(t, l.Close())
}

// Names, times and numbers of pins that would do harm are refused.
func TestWrongPins(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	for _, name := range []string{"", "a b", "a\n", "ä", "../x", "a/b", strings.Repeat("x", 65), "\x00"} {
		_, err := l.Pin(name, nil, time.Hour)
		require.ErrorIs(t, err, ErrPinName, "%q", name)
	}
	for _, d := range []time.Duration{-1, 0, time.Second - 1, LongestPin + 1, 1<<63 - 1} {
		_, err := l.Pin("a", nil, d)
		require.ErrorIs(t, err, ErrPinTime)
	}
	future := Stamp(1<<64 - 1)
	pin, err := l.Pin("a", &future, time.Hour)
	require.NoError(t, err)
	require.LessOrEqual(t, pin.From, StampAt(time.Now()), "it would keep nothing")
	for i := range mostPins - 1 {
		// Not one by one over the disk: each Pin writes all of them.
		l.holds.add(Holder{Kind: Pin, Key: fmt.Sprint(i)}, 0).Linger(time.Hour)
	}
	for i := range 100 {
		_, err := l.Pin(fmt.Sprint("more", i), nil, time.Hour)
		require.ErrorIs(t, err, ErrManyPins)
	}
	_, err = l.Pin("7", nil, time.Hour)
	require.NoError(t, err, "it takes the place of another")
	require.NoError(t, l.Close())
	l = mustOpen(t, dir, Options{})
	require.Len(t, l.Holds(nil), mostPins)
	require.NoError(t, l.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, holdsName), []byte("[{"), 0o644))
	_, err = Open(dir, Options{})
	require.ErrorContains(t, err, holdsName)
}

// renameFS fails to rename files as long as err is set.
type renameFS struct {
	vfs.OS
	err error
}

func (fs *renameFS) Rename(oldname, newname string) error {
	if fs.err != nil && strings.HasSuffix(newname, holdsName) {
		return fs.err
	}
	return fs.OS.Rename(oldname, newname)
}

// A pin that cannot be written is not acknowledged, and what was there stays.
func TestAPinThatCannotBeWritten(t *testing.T) {
	full := errors.New("no space left on device")
	fs := &renameFS{}
	l := mustOpen(t, t.TempDir(), Options{Limit: 1, FS: fs})
	defer l.Close()
	first := mustCommit(t, l, "a")
	_, err := l.Pin("a", nil, time.Hour)
	require.NoError(t, err)
	fs.err = full
	mustCommit(t, l, "b")
	_, err = l.Pin("a", new(l.Last()), time.Hour)
	require.ErrorIs(t, err, full)
	_, err = l.Unpin("a")
	require.ErrorIs(t, err, full)
	_, err = l.Pin("b", nil, time.Hour)
	require.ErrorIs(t, err, full)
	fs.err = nil
	holds := l.Holds(nil)
	require.Len(t, holds, 1)
	require.Equal(t, first, holds[0].From)
}

// Followers that last come back from the file as followers that are away.
func TestPlacesOfFollowersOutlastTheProcess(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	l := mustOpen(t, dir, Options{Limit: 1, Now: c.now})
	lasts := minutes(t, l, c, 3)
	by := Holder{Kind: Follower, What: "the slave with sid=2", Key: "2@h", Weak: true, Most: 1 << 30, Lasts: time.Hour}
	h := l.Hold(by, lasts[0])
	l.Hold(Holder{Kind: Follower, What: "the slave with sid=3", Weak: true}, lasts[0])
	require.NoError(t, l.SaveHolds())
	h.Advance(lasts[1])
	require.NoError(t, l.SaveHolds(), "not again within a minute")
	require.NoError(t, l.Close())
	l = mustOpen(t, dir, Options{Limit: 1, Now: c.now})
	holds := l.Holds(nil)
	require.Len(t, holds, 1)
	require.Equal(t, Away, holds[0].Kind)
	require.Equal(t, lasts[0], holds[0].From)
	require.Equal(t, c.now().Add(time.Hour).UnixNano(), holds[0].Until.UnixNano())
	require.Equal(t, by.Most, holds[0].Most)
	require.True(t, holds[0].Weak)
	h = l.Hold(by, lasts[1])
	c.add(2 * time.Minute)
	require.NoError(t, l.SaveHolds())
	h.Leave(time.Hour)
	require.NoError(t, l.SaveHolds())
	require.NoError(t, l.Close())
	c.add(30 * time.Minute)
	l = mustOpen(t, dir, Options{Limit: 1, Now: c.now})
	require.Len(t, l.Holds(nil), 1)
	require.Equal(t, lasts[1], l.Holds(nil)[0].From)
	c.add(30 * time.Minute)
	require.Empty(t, l.Holds(nil), "the time goes on while the server does not run")
	require.NoError(t, l.Close())
}

// stopFS fails each removal behind the first few.
type stopFS struct {
	vfs.OS
	left int
}

func (fs *stopFS) Remove(name string) error {
	if strings.HasSuffix(name, segmentExt) {
		if fs.left == 0 {
			return errKilled
		}
		fs.left--
	}
	return fs.OS.Remove(name)
}

// Wherever a removal is interrupted, the log that is left has no hole.
func TestAnInterruptedRemoval(t *testing.T) {
	for n := range 8 {
		dir, c := t.TempDir(), newClock()
		fs := &stopFS{left: n}
		l := mustOpen(t, dir, Options{Limit: 1, Now: c.now, FS: fs})
		lasts := minutes(t, l, c, 8)
		l.Hold(Holder{Kind: Database, What: "a.kct"}, lasts[6])
		done, err := l.Trim(maxStamp, false)
		require.ErrorIs(t, err, errKilled)
		require.Equal(t, n, done.Files)
		require.NoError(t, l.Close())
		l = mustOpen(t, dir, Options{Limit: 1, Now: c.now})
		from, first := Stamp(0), 0
		if n > 0 { // segment 1 has no updates
			first = max(n-1, 1)
			from = lasts[first-1]
		}
		r, err := l.NewReader(from)
		require.NoError(t, err)
		require.NoError(t, r.Lost())
		for i := first; i < 8; i++ {
			e, err := r.Next()
			require.NoError(t, err)
			require.Equal(t, lasts[i], e.Stamp)
		}
		require.NoError(t, r.Close())
		require.NoError(t, l.Close())
	}
}
