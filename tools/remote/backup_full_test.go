package remote

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/db/filestore"
	"gotycoon/db/rebuild"
	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
	"gotycoon/snapshot"
)

// backupTargets are the ways to write a backup to a path.
var backupTargets = map[string]func(fs vfs.FS, path string) backupTarget{
	"x.ktss": func(fs vfs.FS, path string) backupTarget { return &snapshotTarget{fs: fs, path: path} },
	"z.ktss": func(fs vfs.FS, path string) backupTarget {
		return &snapshotTarget{fs: fs, path: path, compress: snapshot.Zstd}
	},
	"x.kct": func(fs vfs.FS, path string) backupTarget { return &databaseTarget{fs: fs, path: path} },
}

// fillBackup writes a backup of n records and ends it either way.
func fillBackup(target backupTarget, n int, ascending bool) (w written, err error) {
	err = target.begin(client.CopyInfo{TS: 1e18, Count: int64(n), Ascending: ascending, LogID: [16]byte{1}})
	value := make([]byte, 5000)
	for i := 0; i < n && err == nil; i++ {
		_, _ = rand.Read(value) // no compressor makes less of it
		key := binary.BigEndian.AppendUint32(nil, uint32(i))
		err = target.put(key, value)
	}
	if err == nil {
		w, err = target.commit()
	}
	if err != nil {
		return w, errors.Join(err, target.discard())
	}
	return w, nil
}

func TestBackupOnAFullDisk(t *testing.T) {
	for name, open := range backupTargets {
		for _, ascending := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, name)
				_, err := fillBackup(open(vfs.OS{}, path), 10, ascending)
				require.NoError(t, err)
				before, err := os.ReadFile(path)
				require.NoError(t, err)
				for _, room := range []int64{0, 10, 5000} {
					fs := faultfs.New(vfs.OS{})
					fs.Space(room)
					_, err = fillBackup(open(fs, path), 1000, ascending)
					require.ErrorIs(t, err, syscall.ENOSPC, "room %d", room)
					after, err := os.ReadFile(path)
					require.NoError(t, err)
					require.Equal(t, before, after)
					left, err := os.ReadDir(dir)
					require.NoError(t, err)
					require.Len(t, left, 2)
				}
			})
		}
	}
}

// TestBackupWithABrokenDisk makes every rename, removal and sync fail once. Afterwards the name
// stands for the old backup or for the new one, whole.
func TestBackupWithABrokenDisk(t *testing.T) {
	broken := errors.New("input/output error")
	for name, open := range backupTargets {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			_, err := fillBackup(open(vfs.OS{}, path), 10, true)
			require.NoError(t, err)
			old, err := os.ReadFile(path)
			require.NoError(t, err)
			fails := 0
			for n := 1; n < 20; n++ {
				for _, fail := range []func(*faultfs.FS){
					func(fs *faultfs.FS) { fs.FailChange(n, broken) },
					func(fs *faultfs.FS) { fs.FailSync(n, broken) },
				} {
					fs := faultfs.New(vfs.OS{})
					fail(fs)
					if _, err := fillBackup(open(fs, path), 300, true); err == nil {
						continue
					}
					fails++
					now, err := os.ReadFile(path)
					require.NoError(t, err)
					if len(now) != len(old) {
						requireWhole(t, path, 300)
					}
				}
			}
			require.Greater(t, fails, 4)
		})
	}
}

func requireWhole(t *testing.T, path string, n int64) {
	t.Helper()
	if filepath.Ext(path) == ".kct" {
		f, err := rebuild.Open(path, false, true)
		require.NoError(t, err)
		defer f.Close()
		require.Equal(t, n, f.Meta().Count)
		return
	}
	r, err := snapshot.Open(vfs.OS{}, path)
	require.NoError(t, err)
	defer r.Close()
	for range n {
		_, _, err = r.Next()
		require.NoError(t, err)
	}
}

// TestTwoBackupsToOneName keeps the second one away.
func TestTwoBackupsToOneName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.kct")
	_, err := fillBackup(backupTargets["x.kct"](vfs.OS{}, path), 10, true)
	require.NoError(t, err)
	for name, open := range backupTargets {
		path := filepath.Join(filepath.Dir(path), name)
		first, second := open(vfs.OS{}, path), open(vfs.OS{}, path)
		require.NoError(t, first.begin(client.CopyInfo{}))
		if name != "x.kct" {
			require.ErrorIs(t, second.begin(client.CopyInfo{}), vfs.ErrLocked)
		} else {
			require.ErrorIs(t, second.begin(client.CopyInfo{}), filestore.ErrInUse)
		}
		require.NoError(t, second.discard())
		_, err = first.commit()
		require.NoError(t, err)
	}
}
