package filestore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

func offlineFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.kct")
	require.NoError(t, create(path, Meta{Format: formatVersion, ID: NewID(), Clean: true}))
	return path
}

func TestOfflineLocks(t *testing.T) {
	path := offlineFile(t)
	s, err := Open(path, Options{})
	require.NoError(t, err)
	_, err = OpenOffline(path, false, true)
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, s.Close())

	one, err := OpenOffline(path, false, true)
	require.NoError(t, err)
	two, err := OpenOffline(path, false, true)
	require.NoError(t, err)
	_, err = OpenOffline(path, true, true)
	require.ErrorIs(t, err, ErrInUse)
	_, err = Open(path, Options{TryLock: true})
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, errors.Join(one.Close(), two.Close()))
	all, err := OpenOffline(path, true, true)
	require.NoError(t, err)
	require.NoError(t, all.Close())
	_, err = OpenOffline(path+"none", true, true)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Who has waited for the lock of a file that was replaced meanwhile gets the new one.
func TestOpenCurrentFollowsAReplacement(t *testing.T) {
	path, other := offlineFile(t), offlineFile(t)
	held, err := OpenOffline(path, true, true)
	require.NoError(t, err)
	opened := make(chan Meta, 1)
	go func() {
		var m Meta
		db, _, err := openCurrent(path, bolt.Options{Timeout: 10 * time.Second})
		if err == nil {
			err = errors.Join(db.View(func(tx *bolt.Tx) (err error) {
				m, err = readMeta(tx)
				return err
			}), db.Close())
		}
		if err != nil {
			m.LogDir = err.Error()
		}
		opened <- m
	}()
	time.Sleep(100 * time.Millisecond) //lint:sleep for the other to open the old file
	fresh, err := OpenOffline(other, false, true)
	require.NoError(t, err)
	require.NoError(t, os.Rename(other, path))
	require.False(t, Current(held, path))
	require.True(t, Current(fresh, path))
	require.NoError(t, errors.Join(held.Close(), fresh.Close()))
	m := <-opened
	require.Empty(t, m.LogDir)
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(want), "\"Clean\":true")
	text, err := EncodeMeta(m)
	require.NoError(t, err)
	require.Contains(t, string(want), string(text))
	again, err := DecodeMeta(text)
	require.NoError(t, err)
	require.Equal(t, m, again)
}
