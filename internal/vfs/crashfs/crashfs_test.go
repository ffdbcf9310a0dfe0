package crashfs_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/crashfs"
)

// outcomes cuts the power many times after the same work and returns the different contents of the
// file f that were seen; "none" stands for no file.
func outcomes(t *testing.T, work func(fs vfs.FS, name string)) map[string]bool {
	t.Helper()
	root := t.TempDir()
	fs, err := crashfs.New(root)
	require.NoError(t, err)
	work(fs, filepath.Join(root, "f"))
	seen := map[string]bool{}
	for seed := range uint64(200) {
		dst := filepath.Join(t.TempDir(), fmt.Sprint(seed))
		require.NoError(t, fs.Crash(rand.New(rand.NewPCG(seed, 0)), dst))
		b, err := os.ReadFile(filepath.Join(dst, "f"))
		if err != nil {
			b = []byte("none")
		}
		seen[string(b)] = true
	}
	return seen
}

func create(t *testing.T, fs vfs.FS, name string) vfs.File {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func write(t *testing.T, f vfs.File, s string, off int64) {
	t.Helper()
	_, err := f.WriteAt([]byte(s), off)
	require.NoError(t, err)
}

func set(contents ...string) map[string]bool {
	m := map[string]bool{}
	for _, c := range contents {
		m[c] = true
	}
	return m
}

func TestCrash(t *testing.T) {
	tests := []struct {
		name string
		work func(t *testing.T, fs vfs.FS, name string)
		want map[string]bool
	}{
		{"synced with its name", func(t *testing.T, fs vfs.FS, name string) {
			f := create(t, fs, name)
			write(t, f, "abc", 0)
			require.NoError(t, f.Sync())
			require.NoError(t, fs.SyncDir(filepath.Dir(name)))
		}, set("abc")},
		{"name not synced", func(t *testing.T, fs vfs.FS, name string) {
			f := create(t, fs, name)
			write(t, f, "abc", 0)
			require.NoError(t, f.Sync())
		}, set("abc", "none")},
		{"content not synced", func(t *testing.T, fs vfs.FS, name string) {
			f := create(t, fs, name)
			require.NoError(t, fs.SyncDir(filepath.Dir(name)))
			write(t, f, "abc", 0)
		}, set("", "\x00\x00\x00", "abc")},
		{"second write not synced", func(t *testing.T, fs vfs.FS, name string) {
			f := create(t, fs, name)
			require.NoError(t, fs.SyncDir(filepath.Dir(name)))
			write(t, f, "abc", 0)
			require.NoError(t, f.Sync())
			write(t, f, "X", 1)
			write(t, f, "Y", 2)
		}, set("abc", "aXc", "abY", "aXY")},
		{"truncation not synced", func(t *testing.T, fs vfs.FS, name string) {
			f := create(t, fs, name)
			require.NoError(t, fs.SyncDir(filepath.Dir(name)))
			write(t, f, "abc", 0)
			require.NoError(t, f.Sync())
			require.NoError(t, f.Truncate(1))
		}, set("abc", "a")},
		{"renamed, name not synced", func(t *testing.T, fs vfs.FS, name string) {
			require.NoError(t, vfs.WriteFileAtomic(fs, name, []byte("old")))
			f := create(t, fs, name+".new")
			write(t, f, "new", 0)
			require.NoError(t, f.Sync())
			require.NoError(t, fs.Rename(name+".new", name))
		}, set("old", "new")},
		{"written atomically", func(t *testing.T, fs vfs.FS, name string) {
			require.NoError(t, vfs.WriteFileAtomic(fs, name, []byte("old")))
			require.NoError(t, vfs.WriteFileAtomic(fs, name, []byte("new")))
		}, set("new")},
		{"removal not synced", func(t *testing.T, fs vfs.FS, name string) {
			require.NoError(t, vfs.WriteFileAtomic(fs, name, []byte("old")))
			require.NoError(t, fs.Remove(name))
		}, set("old", "none")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, outcomes(t, func(fs vfs.FS, name string) { tt.work(t, fs, name) }))
		})
	}
}

// A directory whose name was not synced is lost with everything in it, however often that was
// synced.
func TestCrashLosesDirectories(t *testing.T) {
	for name, tt := range map[string]struct {
		sync []string // directories below the root
		may  []string // contents of a/b/f that a power cut may leave
	}{
		"all names synced":      {[]string{"a/b", "a", "."}, []string{"abc"}},
		"no name synced":        {nil, []string{"abc", ""}},
		"last parent synced":    {[]string{"a/b", "a"}, []string{"abc", ""}},
		"parents only":          {[]string{"a", "."}, []string{"abc", ""}},
		"one in between is not": {[]string{"a/b", "."}, []string{"abc", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			fs, err := crashfs.New(root)
			require.NoError(t, err)
			require.NoError(t, fs.MkdirAll(filepath.Join(root, "a", "b"), 0o755))
			f := create(t, fs, filepath.Join(root, "a", "b", "f"))
			write(t, f, "abc", 0)
			require.NoError(t, f.Sync())
			for _, dir := range tt.sync {
				require.NoError(t, fs.SyncDir(filepath.Join(root, dir)))
			}
			seen := map[string]bool{}
			for seed := range uint64(200) {
				dst := filepath.Join(t.TempDir(), fmt.Sprint(seed))
				require.NoError(t, fs.Crash(rand.New(rand.NewPCG(seed, 0)), dst))
				b, _ := os.ReadFile(filepath.Join(dst, "a", "b", "f"))
				seen[string(b)] = true
			}
			require.Equal(t, set(tt.may...), seen)
		})
	}
}

// A directory that is removed and made again has nothing of what the first one had.
func TestCrashKnowsADirectoryThatIsMadeAgain(t *testing.T) {
	root := t.TempDir()
	fs, err := crashfs.New(root)
	require.NoError(t, err)
	dir := filepath.Join(root, "a")
	for _, name := range []string{"old", "new"} {
		require.NoError(t, fs.MkdirAll(dir, 0o755))
		require.NoError(t, vfs.WriteFileAtomic(fs, filepath.Join(dir, name), []byte(name)))
		require.NoError(t, fs.SyncDir(root))
		if name == "old" {
			require.NoError(t, fs.Remove(filepath.Join(dir, name)))
			require.NoError(t, fs.Remove(dir))
		}
	}
	for seed := range uint64(50) {
		dst := filepath.Join(t.TempDir(), fmt.Sprint(seed))
		require.NoError(t, fs.Crash(rand.New(rand.NewPCG(seed, 0)), dst))
		names, err := vfs.OS{}.ReadDir(filepath.Join(dst, "a"))
		require.NoError(t, err)
		require.Equal(t, []string{"new"}, names)
	}
}

func TestCrashLosesBlocks(t *testing.T) {
	big := make([]byte, 3*512)
	for i := range big {
		big[i] = byte('a' + i/512)
	}
	seen := outcomes(t, func(fs vfs.FS, name string) {
		f := create(t, fs, name)
		require.NoError(t, fs.SyncDir(filepath.Dir(name)))
		write(t, f, string(big), 0)
	})
	hole := append([]byte(nil), big...)
	clear(hole[512:1024])
	require.True(t, seen[string(hole)], "a block in the middle can be missing")
	require.True(t, seen[string(big[:512])], "the size can be missing")
}

// TestWriteFileAtomicAtEachStep cuts the power at every change: the file has its old or its new
// content.
func TestWriteFileAtomicAtEachStep(t *testing.T) {
	for step := 1; ; step++ {
		root := t.TempDir()
		name := filepath.Join(root, "f")
		require.NoError(t, os.WriteFile(name, []byte("old"), 0o644))
		fs, err := crashfs.New(root)
		require.NoError(t, err)
		fs.CutAfter(step)
		err = vfs.WriteFileAtomic(fs, name, []byte("new"))
		if err == nil {
			require.Equal(t, 6, step)
			return
		}
		require.ErrorIs(t, err, crashfs.ErrPowerCut)
		_, err = fs.OpenFile(name, os.O_RDONLY, 0)
		require.ErrorIs(t, err, crashfs.ErrPowerCut)
		for seed := range uint64(50) {
			dst := filepath.Join(t.TempDir(), fmt.Sprint(seed))
			require.NoError(t, fs.Crash(rand.New(rand.NewPCG(seed, 0)), dst))
			b, err := os.ReadFile(filepath.Join(dst, "f"))
			require.NoError(t, err)
			require.Contains(t, []string{"old", "new"}, string(b))
		}
	}
}
