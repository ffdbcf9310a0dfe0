package snapshot

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/crashfs"
	"gotycoon/internal/vfs/faultfs"
	"gotycoon/ulog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a database with equal values.
type source struct {
	stamp ulog.Stamp
	value string
	n     int
}

func (s source) Stamp() ulog.Stamp { return s.stamp }
func (s source) Count() int64      { return int64(s.n) }
func (s source) Size() int64       { return 1 }

func (s source) Scan(visit func(key, value []byte) error) error {
	for i := range s.n {
		if err := visit(fmt.Appendf(nil, "k%d", i), []byte(s.value)); err != nil {
			return err
		}
	}
	return nil
}

// older and newer take several writes each.
func older() source { return source{1, strings.Repeat("o", 50_000), 10} }
func newer() source { return source{2, strings.Repeat("n", 60_000), 10} }

// stateOf returns the stamp of the snapshot in a directory, after it has looked at all of it.
func stateOf(t *testing.T, dir string) ulog.Stamp {
	t.Helper()
	h, records := mustRead(t, filepath.Join(dir, Name(3)))
	want := map[ulog.Stamp]source{1: older(), 2: newer()}[h.Stamp]
	require.Len(t, records, want.n)
	for _, p := range records {
		require.Equal(t, want.value, p.value)
	}
	return h.Stamp
}

func TestPowerCutLeavesTheOldOrTheNewSnapshot(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	seen := map[ulog.Stamp]int{}
	for _, c := range every() {
		for n, finished := 1, false; !finished; n++ {
			dir := t.TempDir()
			fs, err := crashfs.New(dir)
			require.NoError(t, err)
			o := Options{FS: fs, Dir: dir, Compressor: c}
			require.NoError(t, o.Write(3, older()))
			fs.CutAfter(n)
			err = o.Write(3, newer())
			finished = err == nil
			fs.Cut()
			for range 3 {
				after := t.TempDir()
				require.NoError(t, fs.Crash(rng, after))
				state := stateOf(t, after)
				seen[state]++
				if finished {
					require.EqualValues(t, 2, state)
				}
			}
		}
	}
	require.Greater(t, seen[1], 20)
	require.Greater(t, seen[2], 10)
}

func TestFailureLeavesTheOldSnapshot(t *testing.T) {
	disk := errors.New("input/output error")
	for name, fault := range map[string]func(fs *faultfs.FS, n int){
		"write":  func(fs *faultfs.FS, n int) { fs.FailWrite(n, disk) },
		"sync":   func(fs *faultfs.FS, n int) { fs.FailSync(n, disk) },
		"change": func(fs *faultfs.FS, n int) { fs.FailChange(n, disk) },
		"space":  func(fs *faultfs.FS, n int) { fs.Space(int64(n) * 30_000) },
	} {
		t.Run(name, func(t *testing.T) {
			failed := 0
			for n, err := 1, disk; err != nil; n++ {
				dir := t.TempDir()
				base, cerr := crashfs.New(dir) // whose syncs take no time
				require.NoError(t, cerr)
				fs := faultfs.New(base)
				o := Options{FS: fs, Dir: dir}
				require.NoError(t, o.Write(3, older()))
				fault(fs, n)
				if err = o.Write(3, newer()); err == nil {
					require.EqualValues(t, 2, stateOf(t, dir))
					continue
				}
				failed++
				require.ErrorContains(t, err, Name(3))
				if name == "space" {
					require.ErrorIs(t, err, syscall.ENOSPC)
				}
				if name != "change" { // where the directory could not be synced either
					require.EqualValues(t, 1, stateOf(t, dir))
					require.NoFileExists(t, filepath.Join(dir, Name(3)+".tmp"))
				}
				o.FS = vfs.OS{}
				require.NoError(t, o.Write(3, newer()), "the next time")
				require.EqualValues(t, 2, stateOf(t, dir))
			}
			require.Positive(t, failed)
		})
	}
}

func TestInterruptedSnapshotLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, Pause: func() error { return ErrStopped }}
	require.ErrorIs(t, o.Write(0, older()), ErrStopped)
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, names)
}

// As in golden/snapshot/robustness.txt: leading digits are the index, the last extension counts in
// any case.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	good := encode(t, Header{Stamp: 7, Count: 1}, some(1))
	for _, name := range []string{"00000000.ktss", "0.ktss", "1upper.KTSS", "00000002.x.Ktss", "00000012.ktss", "00000000.ktss.tmp", "x0.ktss",
		"0ktss", "0.ktss.bak", "99999999999999999999.ktss"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), good, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "3.ktss"), []byte("none"), 0o600))
	files, err := List(vfs.OS{}, dir)
	require.NoError(t, err)
	found := map[string]int{}
	for _, f := range files {
		found[filepath.Base(f.Path)] = f.Index
		if f.Index == 3 {
			require.ErrorIs(t, f.Err, ErrNoSnapshot)
			require.ErrorContains(t, f.Err, f.Path)
			continue
		}
		require.NoError(t, f.Err)
		require.EqualValues(t, 7, f.Header.Stamp)
	}
	require.Equal(t, map[string]int{"00000000.ktss": 0, "0.ktss": 0, "1upper.KTSS": 1, "00000002.x.Ktss": 2, "00000012.ktss": 12, "3.ktss": 3}, found)
}

func TestOldestFirst(t *testing.T) {
	files := []File{{Path: "bad", Err: ErrNoSnapshot}, {Path: "b", Header: Header{Stamp: 2}}, {Path: "a", Header: Header{Stamp: 1}}, {Path: "c", Header: Header{Stamp: 2}}}
	Oldest(files)
	var order []string
	for _, f := range files {
		order = append(order, f.Path)
	}
	require.Equal(t, []string{"a", "b", "c", "bad"}, order)
}
