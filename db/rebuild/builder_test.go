package rebuild

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore"
)

// requireSound lets bbolt check a file, and compares its records.
func requireSound(t *testing.T, path string, want map[string]string) filestore.Meta {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	defer db.Close()
	got := map[string]string{}
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			require.NoError(t, err)
		}
		return tx.Bucket([]byte(filestore.DataBucket)).ForEach(func(k, v []byte) error {
			got[string(k[1:])] = string(v)
			return nil
		})
	}))
	require.Equal(t, len(want), len(got))
	require.True(t, maps.Equal(want, got))
	var size int64
	for k, v := range want {
		size += int64(len(k) + len(v))
	}
	_, err = Open(path, false, true)
	require.ErrorIs(t, err, filestore.ErrInUse)
	require.NoError(t, db.Close())
	f, err := Open(path, false, true)
	require.NoError(t, err)
	defer f.Close()
	m := f.Meta()
	require.Equal(t, int64(len(want)), m.Count)
	require.Equal(t, size, m.Bytes)
	return m
}

func name(t *testing.T) string { return filepath.Join(t.TempDir(), "a.kct") }

func TestAppend(t *testing.T) {
	long := bytes.Repeat([]byte("x"), filestore.MaxKeySize-8)
	for _, n := range []int{0, 1, 2, 100, 5000, 60_000} {
		for _, shape := range []struct{ key, value int }{{0, 10}, {0, 3000}, {1500, 0}, {3000, 9000}, {len(long), 1}} {
			if n*(shape.key+shape.value) > 30<<20 {
				continue
			}
			t.Run(fmt.Sprint(n, shape), func(t *testing.T) {
				path := name(t)
				b, err := New(path, Options{})
				require.NoError(t, err)
				want := map[string]string{}
				for i := range n {
					key := fmt.Appendf(nil, "%08d%s", i, long[:shape.key])
					value := bytes.Repeat([]byte{byte(i)}, shape.value)
					require.NoError(t, b.Append(key, value))
					want[string(key)] = string(value)
				}
				m := filestore.Meta{ID: filestore.NewID(), Stamp: 77, Clean: true}
				require.NoError(t, b.Commit(m))
				got := requireSound(t, path, want)
				require.Equal(t, m.ID, got.ID)
				require.Equal(t, m.Stamp, got.Stamp)
				requireWritable(t, path, want)
			})
		}
	}
}

// requireWritable lets bbolt change a file that was written page by page.
func requireWritable(t *testing.T, path string, want map[string]string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true})
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(1, 2))
	keys := slices.Sorted(maps.Keys(want))
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(filestore.DataBucket))
		for _, k := range keys {
			switch rnd.IntN(3) {
			case 0:
				delete(want, k)
				require.NoError(t, b.Delete(append([]byte{filestore.KeyPrefix}, k...)))
			case 1:
				k = k[:min(8, len(k))] + "+"
				want[k] = "more"
				require.NoError(t, b.Put(append([]byte{filestore.KeyPrefix}, k...), []byte("more")))
			}
		}
		return nil
	}))
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			require.NoError(t, err)
		}
		require.Equal(t, len(want), tx.Bucket([]byte(filestore.DataBucket)).Stats().KeyN)
		return nil
	}))
	require.NoError(t, db.Close())
}

func TestAppendRefusesDisorder(t *testing.T) {
	b, err := New(name(t), Options{})
	require.NoError(t, err)
	require.NoError(t, b.Append([]byte("b"), nil))
	require.ErrorIs(t, b.Append([]byte("b"), nil), ErrOrder)
	require.ErrorIs(t, b.Append([]byte("a"), nil), ErrOrder)
	require.NoError(t, b.Discard())
	require.NoError(t, b.Discard())
}

func TestAnyOrder(t *testing.T) {
	for _, memory := range []int64{1, 3000, 1 << 20} {
		for _, withBase := range []bool{false, true} {
			t.Run(fmt.Sprint(memory, withBase), func(t *testing.T) { testAnyOrder(t, memory, withBase) })
		}
	}
}

func testAnyOrder(t *testing.T, memory int64, withBase bool) {
	path, want := name(t), map[string]string{}
	rnd := rand.New(rand.NewPCG(1, uint64(memory)))
	if withBase {
		b, err := New(path, Options{})
		require.NoError(t, err)
		for i := range 300 {
			key := fmt.Sprintf("key%04d", 2*i)
			want[key] = "base"
			require.NoError(t, b.Append([]byte(key), []byte("base")))
		}
		require.NoError(t, b.Commit(filestore.Meta{}))
	}
	b, err := New(path, Options{Replace: true, Memory: memory})
	require.NoError(t, err)
	if withBase {
		base, err := Open(path, true, true)
		require.NoError(t, err)
		defer base.Close()
		b.Over(base)
	}
	for i := range 3000 {
		key := fmt.Sprintf("key%04d", rnd.IntN(700))
		if rnd.IntN(50) == 0 {
			key = key[:rnd.IntN(len(key)+1)]
		}
		switch n := rnd.IntN(1000); {
		case n == 0 && memory > 1:
			require.NoError(t, b.Clear())
			clear(want)
		case n < 200:
			require.NoError(t, b.Remove([]byte(key)))
			delete(want, key)
		default:
			want[key] = fmt.Sprint(i, string(bytes.Repeat([]byte("v"), rnd.IntN(200))))
			require.NoError(t, b.Set([]byte(key), []byte(want[key])))
		}
	}
	require.NoError(t, b.Commit(filestore.Meta{Clean: true}))
	requireSound(t, path, want)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestExistingFileIsNotReplacedUnasked(t *testing.T) {
	path := name(t)
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err := New(path, Options{})
	require.ErrorIs(t, err, os.ErrExist)
	late := name(t)
	b, err := New(late, Options{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(late, []byte("mine"), 0o600))
	require.ErrorIs(t, b.Commit(filestore.Meta{}), os.ErrExist)
	text, err := os.ReadFile(late)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
}

func TestLeftoversAreRemoved(t *testing.T) {
	path := name(t)
	left := path + suffix + "0123abcd"
	require.NoError(t, os.WriteFile(left, []byte("half"), 0o600))
	other := path + suffix + "notes.txt"
	require.NoError(t, os.WriteFile(other, []byte("mine"), 0o600))
	busy, err := New(path, Options{})
	require.NoError(t, err)
	require.NoFileExists(t, left)
	b, err := New(path, Options{})
	require.NoError(t, err)
	require.NoError(t, b.Discard())
	require.FileExists(t, busy.temp)
	require.FileExists(t, other)
	require.NoError(t, busy.Commit(filestore.Meta{}))
	requireSound(t, path, map[string]string{})
}

func TestModeAndLinkAreKept(t *testing.T) {
	path := name(t)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(path, link))
	b, err := New(link, Options{Replace: true})
	require.NoError(t, err)
	require.NoError(t, b.Commit(filestore.Meta{}))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	info, err = os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
}
