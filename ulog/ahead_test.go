package ulog

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/crashfs"
	"gotycoon/internal/vfs/faultfs"
	"gotycoon/ulog/update"
)

// aheadOptions let values of 100 bytes go ahead.
func aheadOptions() Options { return Options{Ahead: 100, SyncInterval: time.Hour} }

func setLarge(key string) Update {
	return Update{SID: 7, Op: OpSet, Key: []byte(key), Value: bytes.Repeat([]byte(key+"."), 1000), Stays: true}
}

// mustWriteAhead writes the value of an update ahead, and has the update refer to it.
func mustWriteAhead(t testing.TB, l *Log, u Update) Update {
	t.Helper()
	a, err := l.WriteAhead(&u, nil)
	require.NoError(t, err)
	require.NotNil(t, a)
	u.Ahead = a
	return u
}

// filesWith returns the names in a directory that contain a text.
func filesWith(t testing.TB, dir, text string) (found []string) {
	t.Helper()
	names, err := vfs.OS{}.ReadDir(dir)
	require.NoError(t, err)
	for _, name := range names {
		if strings.Contains(name, text) {
			found = append(found, name)
		}
	}
	return found
}

// A value that was written ahead is a segment like any other, whoever reads it, also where the log
// remembers a server that is followed.
func TestAValueWrittenAheadBecomesASegment(t *testing.T) {
	for name, state := range map[string][]byte{"nothing remembered": nil, "a place remembered": []byte("place")} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := mustOpen(t, dir, aheadOptions())
			if state != nil {
				_, err := l.AppendReplicated(nil, &Position{State: state})
				require.NoError(t, err)
			}
			r, err := l.NewReader(0)
			require.NoError(t, err)
			ups := []Update{set("a"), setLarge("b"), set("c"), setLarge("d"), setLarge("e"), set("f")}
			var last Stamp
			for i := range ups {
				if ups[i].Stays {
					ups[i] = mustWriteAhead(t, l, ups[i])
				}
				if last, err = l.Append(ups[i : i+1]); i != 3 { // e has to wait for d
					require.NoError(t, l.Wait(last))
				}
				require.NoError(t, err)
			}
			require.Empty(t, filesWith(t, dir, unborn))
			require.Len(t, filesWith(t, dir, segmentExt), 4)
			require.EqualValues(t, 6, l.Updates())
			entries, _ := tailed(t, r)
			require.Len(t, entries, len(ups))
			require.NoError(t, r.Close())
			files, err := l.Files()
			require.NoError(t, err)
			for i, f := range files {
				info, err := os.Stat(f.Path)
				require.NoError(t, err)
				require.Equal(t, info.Size(), f.Size)
				at, ours := boundary(vfs.OS{}, dir, uint64(i+1))
				require.True(t, ours && (i == 0 || at == files[i-1].Last), "it begins where the one before ends")
			}
			require.NoError(t, l.Close())
			all, damage, reports := drain(t, dir, 0)
			require.Empty(t, damage)
			require.Empty(t, reports)
			for i := range all {
				require.True(t, string(AppendMessage(nil, &ups[i])) == all[i].msg, i)
			}
			require.Len(t, all, len(ups))
			again := mustOpen(t, dir, Options{})
			require.Equal(t, last, again.Last())
			remembered, _ := again.Remembered()
			require.Equal(t, state, remembered)
			require.NoError(t, again.Close())
		})
	}
}

// While the disk takes a value that goes ahead, others are served, and the next such value waits
// for its turn.
func TestNobodyWaitsForAValueThatGoesAhead(t *testing.T) {
	dir, fs := t.TempDir(), faultfs.New(vfs.OS{})
	o := aheadOptions()
	o.FS = fs
	l := mustOpen(t, dir, o)
	mustCommit(t, l, "a")
	entered, release := make(chan struct{}), make(chan struct{})
	fs.OnSync(func() { entered <- struct{}{}; <-release })
	written := make(chan Update)
	for _, key := range []string{"b", "c"} {
		go func() { written <- mustWriteAhead(t, l, setLarge(key)) }()
	}
	<-entered
	mustCommit(t, l, keys("k", 100)...)
	require.Len(t, filesWith(t, dir, aheadPrefix), 1, "one at a time")
	fs.OnSync(nil)
	close(release)
	for range 2 {
		s, err := l.Append([]Update{<-written})
		require.NoError(t, err)
		require.NoError(t, l.Wait(s))
	}
	require.NoError(t, l.Close())
	require.Len(t, readKeys(t, dir), 103)
}

// An update whose value could not be written ahead is refused, and nothing else happens.
func TestAValueThatCannotBeWrittenAheadIsRefused(t *testing.T) {
	for name, fault := range map[string]func(fs *faultfs.FS){
		"no room": func(fs *faultfs.FS) { fs.Space(1000) },
		"write":   func(fs *faultfs.FS) { fs.FailWrite(2, errDisk) },
		"sync":    func(fs *faultfs.FS) { fs.FailSync(1, errDisk) },
		"create":  func(fs *faultfs.FS) { fs.FailChange(1, errDisk) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, fs := t.TempDir(), faultfs.New(vfs.OS{})
			o := aheadOptions()
			o.FS = fs
			l := mustOpen(t, dir, o)
			mustCommit(t, l, "a")
			fault(fs)
			u := setLarge("b")
			a, err := l.WriteAhead(&u, nil)
			require.ErrorIs(t, err, ErrAhead)
			require.Nil(t, a)
			fs.FailWrite(1<<20, nil)
			fs.FailSync(1<<20, nil)
			fs.FailChange(1<<20, nil)
			fs.Space(1 << 20)
			require.NoError(t, l.Err())
			require.Empty(t, filesWith(t, dir, unborn))
			mustCommit(t, l, "c")
			s, err := l.Append([]Update{mustWriteAhead(t, l, u)})
			require.NoError(t, err)
			require.NoError(t, l.Wait(s))
			require.NoError(t, l.Close())
			require.Equal(t, []string{"a", "c", "b"}, readKeys(t, dir))
		})
	}
}

// A value is removed when its update is not appended, and stays when it is.
func TestAValueWrittenAheadIsDiscarded(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, aheadOptions())
	u := mustWriteAhead(t, l, setLarge("a"))
	require.Len(t, filesWith(t, dir, aheadPrefix), 1)
	u.Ahead.Discard()
	u.Ahead.Discard()
	(*update.Ahead)(nil).Discard()
	require.Empty(t, filesWith(t, dir, aheadPrefix))
	u = mustWriteAhead(t, l, setLarge("b"))
	s, err := l.Append([]Update{u})
	require.NoError(t, err)
	u.Ahead.Discard()
	require.NoError(t, l.Wait(s))
	u.Ahead.Discard()
	require.NoError(t, l.Close())
	require.Equal(t, []string{"b"}, readKeys(t, dir))
}

// What the log remembers may become longer between the writing of a value and its update's turn,
// and a value may come in a group with others: then the value is written in its turn.
func TestAValueThatDoesNotFitIsWrittenInItsTurn(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, aheadOptions())
	a, b := mustWriteAhead(t, l, setLarge("a")), mustWriteAhead(t, l, setLarge("b"))
	_, err := l.AppendReplicated(sets("x"), &Position{State: []byte("state")})
	require.NoError(t, err)
	_, err = l.Append([]Update{a})
	require.NoError(t, err)
	s, err := l.Append([]Update{set("y"), b, set("z")})
	require.NoError(t, err)
	require.NoError(t, l.Wait(s))
	require.EqualValues(t, 1, l.writer.end().seg)
	require.Empty(t, filesWith(t, dir, unborn))
	require.NoError(t, l.Close())
	require.Equal(t, []string{"x", "a", "y", "b", "z"}, readKeys(t, dir))
}

// Small values, those that may change, and those of a log that is one segment for ever do not go
// ahead.
func TestWhatDoesNotGoAhead(t *testing.T) {
	l := mustOpen(t, t.TempDir(), aheadOptions())
	endless := mustOpen(t, t.TempDir(), Options{Ahead: 100, Limit: -1})
	u, small := setLarge("a"), set("b")
	full := func() error { return errDisk }
	for _, none := range []func() (*update.Ahead, error){
		func() (*update.Ahead, error) { return endless.WriteAhead(&u, nil) },
		func() (*update.Ahead, error) { return l.WriteAhead(&Update{Op: OpSet, Value: make([]byte, 1000)}, nil) },
		func() (*update.Ahead, error) {
			return l.WriteAhead(&Update{Op: OpSet, Value: make([]byte, 99), Stays: true}, nil)
		},
		func() (*update.Ahead, error) { return l.WriteAhead(&small, full) },
		func() (*update.Ahead, error) {
			return l.WriteAhead(&Update{Op: OpRemove, Key: []byte("k"), Stays: true}, nil)
		},
	} {
		a, err := none()
		require.NoError(t, err)
		require.Nil(t, a)
	}
	_, err := l.WriteAhead(&u, full)
	require.Equal(t, errDisk, err)
	require.NoError(t, l.Close())
	require.NoError(t, endless.Close())
	_, err = l.WriteAhead(&u, nil)
	require.ErrorIs(t, err, errClosed)
}

// What a process that died has written ahead is in nobody's way and goes away when the log is
// opened.
func TestLeftValuesAreRemoved(t *testing.T) {
	dir, fs := t.TempDir(), faultfs.New(vfs.OS{})
	o := aheadOptions()
	o.FS = fs
	l := mustOpen(t, dir, o)
	mustCommit(t, l, "a")
	waits := mustWriteAhead(t, l, setLarge("b"))
	mustWriteAhead(t, l, setLarge("c"))
	fs.FailChange(1, errKilled)
	s, err := l.Append([]Update{waits})
	require.NoError(t, err)
	require.ErrorIs(t, l.Wait(s), errKilled)
	require.ErrorIs(t, l.Close(), errKilled)
	require.Len(t, filesWith(t, dir, aheadPrefix), 2)
	require.Equal(t, []string{"a"}, readKeys(t, dir))
	files, err := Files(vfs.OS{}, dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
	l = mustOpen(t, dir, aheadOptions())
	require.Empty(t, filesWith(t, dir, aheadPrefix))
	require.NoError(t, l.Close())
	require.FileExists(t, filepath.Join(dir, segmentName(1)))
}

// A failure in the update's turn ends the log, as for any group.
func TestFailureInTheTurnOfAValue(t *testing.T) {
	for n := 1; ; n++ {
		dir, fs := t.TempDir(), faultfs.New(vfs.OS{})
		o := aheadOptions()
		o.FS = fs
		l := mustOpen(t, dir, o)
		mustCommit(t, l, "a")
		u := mustWriteAhead(t, l, setLarge("b"))
		fs.FailChange(n, errDisk)
		s, err := l.Append([]Update{u})
		require.NoError(t, err)
		if err = l.Wait(s); err == nil {
			require.Greater(t, n, 5, "all steps were tried")
			require.ErrorIs(t, errors.Join(l.Close(), errDisk), errDisk)
			return
		}
		require.ErrorIs(t, err, errDisk)
		require.ErrorIs(t, l.Err(), errDisk)
		require.Error(t, l.Close())
		l = mustOpen(t, dir, aheadOptions())
		require.NoError(t, l.Close())
		require.Contains(t, [][]string{{"a"}, {"a", "b"}}, readKeys(t, dir))
	}
}

// What is in the log before a value that was written ahead is on the disk when the value's segment
// is.
func TestPowerCutBehindAValue(t *testing.T) {
	root := t.TempDir()
	disk, err := crashfs.New(root)
	require.NoError(t, err)
	o := aheadOptions()
	o.FS = disk
	l := mustOpen(t, filepath.Join(root, "ulog"), o)
	mustCommit(t, l, "a")
	u := mustWriteAhead(t, l, setLarge("b"))
	mustCommit(t, l, "c")
	s, err := l.Append([]Update{u})
	require.NoError(t, err)
	require.NoError(t, l.SyncTo(s))
	disk.Cut()
	require.NoError(t, l.Close(), "nothing is left to be written")
	for seed := range uint64(20) {
		after := filepath.Join(t.TempDir(), fmt.Sprint(seed))
		require.NoError(t, disk.Crash(rand.New(rand.NewPCG(seed, 0)), after))
		dir := filepath.Join(after, "ulog")
		require.NoError(t, mustOpen(t, dir, Options{}).Close())
		require.Equal(t, []string{"a", "c", "b"}, readKeys(t, dir))
	}
}
