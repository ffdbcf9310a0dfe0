package rebuild

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/db/filestore"
	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/crashfs"
	"gotycoon/internal/vfs/faultfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// build makes a file with n records, over the one that is there, if any.
func build(fs vfs.FS, path string, n int, memory int64) error {
	b, err := New(path, Options{Replace: true, FS: fs, Memory: memory})
	if err != nil {
		return err
	}
	defer b.Discard() // after an error that is returned
	if base, err := Open(path, true, true); err == nil {
		defer base.Close()
		b.Over(base)
	}
	for i := range n {
		if err := b.Set(fmt.Appendf(nil, "key%05d", i), fmt.Appendf(nil, "xxxxx%d.%0*d", n, i%300, i)); err != nil {
			return err
		}
	}
	return b.Commit(filestore.Meta{Stamp: 1})
}

// contents returns the records of a file.
func contents(t *testing.T, path string) map[string]string {
	t.Helper()
	r, err := Check(path, true, nil)
	require.NoError(t, err)
	require.Empty(t, r.Damage)
	f, err := Open(path, false, true)
	require.NoError(t, err)
	defer f.Close()
	records := map[string]string{}
	require.NoError(t, f.Records(func(key, value []byte) error {
		records[string(key)] = string(value)
		return nil
	}))
	return records
}

const smallMemory = 40 << 10 // so that records are written to be sorted

// After a power cut at any step the name stands for the old file or for the new one, and the next
// one to build cleans up.
func TestPowerCut(t *testing.T) {
	model := t.TempDir() + "/a.kct"
	require.NoError(t, build(vfs.OS{}, model, 150, 0))
	old := contents(t, model)
	require.NoError(t, build(vfs.OS{}, model, 600, 0))
	fresh := contents(t, model)
	rnd := rand.New(rand.NewPCG(7, 8))
	outcomes := map[bool]int{}
	for cut := 1; ; cut++ {
		dir, after := t.TempDir(), t.TempDir()
		require.NoError(t, build(vfs.OS{}, dir+"/a.kct", 150, 0))
		fs, err := crashfs.New(dir)
		require.NoError(t, err)
		fs.CutAfter(cut)
		err = build(fs, dir+"/a.kct", 600, 20<<10)
		if err != nil {
			require.ErrorIs(t, err, crashfs.ErrPowerCut)
		}
		for range 2 {
			require.NoError(t, fs.Crash(rnd, after))
			got := contents(t, after+"/a.kct")
			require.True(t, maps.Equal(got, fresh) || err != nil && maps.Equal(got, old), "cut %d: %d records", cut, len(got))
			outcomes[maps.Equal(got, old)]++
		}
		require.NoError(t, build(vfs.OS{}, after+"/a.kct", 600, 0))
		entries, derr := os.ReadDir(after)
		require.NoError(t, derr)
		require.Len(t, entries, 1)
		if err == nil {
			break
		}
		require.Less(t, cut, 1000)
	}
	require.Greater(t, outcomes[true], 10)
	require.NotZero(t, outcomes[false])
}

// A full disk, or one that fails, gives a clear error, and leaves the old file and nothing else.
func TestFailingDisk(t *testing.T) {
	path := t.TempDir() + "/a.kct"
	require.NoError(t, build(vfs.OS{}, path, 500, 0))
	old := contents(t, path)
	for _, memory := range []int64{0, smallMemory} {
		for n := 1; ; n++ {
			fs := faultfs.New(vfs.OS{})
			fs.FailChange(n, syscall.EIO)
			if n == 1 {
				fs.Space(100_000)
			}
			err := build(fs, path, 2000, memory)
			if err == nil {
				break
			}
			require.Less(t, n, 200)
			require.Error(t, err)
			entries, derr := filepath.Glob(path + "*")
			require.NoError(t, derr)
			if len(entries) == 1 {
				got := contents(t, path)
				require.True(t, maps.Equal(old, got) || len(got) == 2000, "step %d", n)
			}
			require.NoError(t, os.RemoveAll(path))
			require.NoError(t, build(vfs.OS{}, path, 500, 0))
		}
	}
}

func TestFullDisk(t *testing.T) {
	path := t.TempDir() + "/a.kct"
	require.NoError(t, build(vfs.OS{}, path, 500, 0))
	old := contents(t, path)
	for _, space := range []int64{0, 5000, 100_000, 300_000} {
		fs := faultfs.New(vfs.OS{})
		fs.Space(space)
		err := build(fs, path, 2000, smallMemory)
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Contains(t, err.Error(), path)
		require.True(t, maps.Equal(old, contents(t, path)))
		entries, err := filepath.Glob(path + "*")
		require.NoError(t, err)
		require.Len(t, entries, 1)
	}
}
