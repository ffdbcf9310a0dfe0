package ulog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
)

// A stamp that followers were promised is given to no update after a kill or a clean end, though
// the clock is behind then.
func TestAPromiseOutlivesTheProcess(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, l *Log, fs *faultfs.FS){
		"kill":  func(t *testing.T, l *Log, fs *faultfs.FS) { fs.FailChange(1, errKilled); _ = l.Close() },
		"close": func(t *testing.T, l *Log, fs *faultfs.FS) { require.NoError(t, l.Close()) },
		"segment": func(t *testing.T, l *Log, fs *faultfs.FS) {
			mustCommit(t, l, keys("k", 30)...)
			fs.FailChange(1, errKilled)
			_ = l.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, c, fs := t.TempDir(), newClock(), faultfs.New(vfs.OS{})
			o := Options{FS: fs, Now: c.now, SyncInterval: time.Hour, Limit: 400}
			l := mustOpen(t, dir, o)
			mustCommit(t, l, "before")
			c.add(time.Minute) // nothing happens, and followers hear about the time
			told := l.Promise(StampAt(c.now()))
			require.Equal(t, StampAt(c.now()), told)
			last := l.Last()
			end(t, l, fs)

			c.add(-time.Hour)
			o.FS = vfs.OS{}
			l = mustOpen(t, dir, o)
			defer l.Close()
			if name != "segment" {
				require.Equal(t, last, l.Last(), "a promise is no record")
			}
			at, err := l.Append(sets("after"))
			require.NoError(t, err)
			require.Greater(t, at, told)
		})
	}
}

// Many heartbeats cost one sync.
func TestPromisesAreMadeInAdvance(t *testing.T) {
	c, fs := newClock(), faultfs.New(vfs.OS{})
	l := mustOpen(t, t.TempDir(), Options{FS: fs, Now: c.now, SyncInterval: time.Hour})
	defer l.Close()
	mustCommit(t, l, "k")
	l.Promise(StampAt(c.now()))
	before := fs.Syncs()
	for range 100 { // ten seconds
		c.add(100 * time.Millisecond)
		require.Equal(t, StampAt(c.now()), l.Promise(StampAt(c.now())))
	}
	require.LessOrEqual(t, fs.Syncs()-before, 2)
}

// After a clean end stamps go on where they were, not where a header had promised in advance.
func TestACleanEndPromisesNoMoreThanWasTold(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	l := mustOpen(t, dir, Options{Now: c.now, SyncInterval: time.Hour})
	mustCommit(t, l, "k")
	c.add(time.Minute)
	told := l.Promise(StampAt(c.now()))
	require.NoError(t, l.Close())
	l = mustOpen(t, dir, Options{Now: c.now})
	defer l.Close()
	at, err := l.Append(sets("after"))
	require.NoError(t, err)
	require.Equal(t, told+1, at)
}

// A full segment says what it holds: what its header has promised is promised by the next one.
func TestAFullSegmentHandsItsPromiseOver(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	l := mustOpen(t, dir, Options{Now: c.now, SyncInterval: time.Hour, Limit: 200})
	defer l.Close()
	mustCommit(t, l, keys("a", 10)...)
	told := l.Promise(StampAt(c.now().Add(time.Minute)))
	mustCommit(t, l, keys("b", 10)...)
	nums, err := listSegments(vfs.OS{}, dir)
	require.NoError(t, err)
	require.Greater(t, len(nums), 2)
	r, err := OpenReader(vfs.OS{}, dir, 0, ReaderOptions{})
	require.NoError(t, err)
	defer r.Close()
	for i, n := range nums {
		head, _, err := statSegment(vfs.OS{}, dir, n)
		require.NoError(t, err)
		if i == len(nums)-1 {
			require.Greater(t, head.last, told)
			return
		}
		require.NoError(t, r.open(nums[i+1]))
		require.Equal(t, r.front(), head.last, "a segment begins with the stamp that the one before ends with")
	}
}

// A follower that is told a stamp while the log is being closed keeps it, too.
func TestAPromiseWhileTheLogIsClosed(t *testing.T) {
	dir, c, fs := t.TempDir(), newClock(), faultfs.New(vfs.OS{})
	l := mustOpen(t, dir, Options{FS: fs, Now: c.now, SyncInterval: time.Hour})
	mustCommit(t, l, "k")
	l.Promise(StampAt(c.now().Add(time.Minute)))
	mustCommit(t, l, "unsynced")
	var told Stamp
	fs.OnSync(func() { told = l.Promise(StampAt(c.now().Add(time.Minute + 5*time.Second))) })
	require.NoError(t, l.Close())
	require.NotZero(t, told)

	l = mustOpen(t, dir, Options{Now: c.now})
	defer l.Close()
	at, err := l.Append(sets("after"))
	require.NoError(t, err)
	require.Greater(t, at, told)
}

func TestRecordsPassWhatAnotherServerHasPromised(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{Now: func() time.Time { return time.Unix(1000, 0) }})
	promised := StampAt(time.Unix(2000, 0))
	l.Pass(promised)
	l.Pass(StampAt(time.Unix(500, 0)))
	at, err := l.Append([]Update{set("k")})
	require.NoError(t, err)
	require.Greater(t, at, promised)
	require.NoError(t, l.Close())
}
