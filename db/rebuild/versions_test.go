package rebuild

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/filestore"
	"gotycoon/ulog"
)

// versioned makes a file with n records and as many removals, and returns what it remembers.
func versioned(t testing.TB, n int) (path string, want map[string]filestore.LastUpdate) {
	t.Helper()
	path, want = filepath.Join(t.TempDir(), "v.kct"), map[string]filestore.LastUpdate{}
	s, err := filestore.Open(path, filestore.Options{LWW: true})
	require.NoError(t, err)
	for i := range n {
		at := ulog.Stamp(2*i + 1)
		gone, kept := fmt.Sprintf("gone %05d", i), fmt.Sprintf("kept %05d", i)
		s.Apply(at+1, []ulog.Update{
			{Op: ulog.OpRemove, Key: []byte(gone), SID: 7},
			{Op: ulog.OpSet, Key: []byte(kept), Value: stored(fmt.Sprint(i)), SID: 9, Origin: ulog.Origin{Log: 3, Stamp: 2e9 + at}},
		})
		want[gone] = filestore.LastUpdate{Version: filestore.Version{Stamp: at, SID: 7}, Removed: true}
		want[kept] = filestore.LastUpdate{Version: filestore.Version{Stamp: 2e9 + at, SID: 9}}
	}
	require.NoError(t, s.Close())
	return path, want
}

func stored(value string) []byte { return append([]byte{255, 255, 255, 255, 255}, value...) }

// opened requires that a file is sound, and returns what it remembers, as a server sees it.
func opened(t testing.TB, path string) map[string]filestore.LastUpdate {
	t.Helper()
	r, err := Check(path, true, nil)
	require.NoError(t, err)
	require.Empty(t, r.Damage)
	s, err := filestore.Open(path, filestore.Options{})
	require.NoError(t, err)
	got := map[string]filestore.LastUpdate{}
	require.NoError(t, s.EachEntry(func(key []byte, e filestore.LastUpdate) { got[string(key)] = e }, nil))
	require.NoError(t, s.Close())
	return got
}

func TestVersionsAreBuiltAndRead(t *testing.T) {
	for _, n := range []int{0, 1, 10, 5000} {
		path, want := versioned(t, n)
		require.Equal(t, want, opened(t, path))
		f, err := Open(path, true, true)
		require.NoError(t, err)
		b, err := New(path, Options{Replace: true, Memory: 1 << 20}) // so that some must be put aside
		require.NoError(t, err)
		require.NoError(t, f.Records(b.Append))
		require.NoError(t, f.Versions(b.Remember))
		m := f.Meta()
		require.True(t, m.LWW)
		require.NoError(t, b.Commit(m))
		require.NoError(t, f.Close())
		require.Equal(t, want, opened(t, path))
		f, err = Open(path, true, true)
		require.NoError(t, err)
		require.EqualValues(t, n, f.Meta().Removals)
		require.NoError(t, f.Close())
		left, err := filepath.Glob(path + "*")
		require.NoError(t, err)
		require.Equal(t, []string{path}, left)
	}
}

func TestWhatWasRememberedIsForgottenWithAClear(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v.kct")
	b, err := New(path, Options{})
	require.NoError(t, err)
	for _, key := range []string{"before", "behind"} {
		require.NoError(t, b.Clear())
		require.NoError(t, b.Set([]byte(key), stored("1")))
		require.NoError(t, b.Remember([]byte(key), filestore.LastUpdate{Version: filestore.Version{Stamp: 5}}))
	}
	require.NoError(t, b.Commit(filestore.Meta{ID: filestore.NewID(), LWW: true}))
	require.Equal(t, map[string]filestore.LastUpdate{"behind": {Version: filestore.Version{Stamp: 5}}}, opened(t, path))
}

// Whatever page is destroyed: a record is never made of a version.
func TestVersionsAreSalvaged(t *testing.T) {
	path, want := versioned(t, 1500)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	m, err := newestMeta(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	size := os.Getpagesize()
	data = data[:m.end*uint64(size)]
	for page := -1; page < len(data)/size; page++ {
		broken := bytes.Clone(data)
		if page >= 0 {
			clear(broken[page*size : (page+1)*size])
		}
		to := newSaved()
		s := newSalvager(bytes.NewReader(broken), int64(len(broken)), to, nil)
		require.NoError(t, s.run())
		got := to.versions
		for key := range to.records {
			require.False(t, want[key].Removed, "page %d: %q is no record", page, key)
		}
		for key, e := range got {
			require.Equal(t, want[key], e, "page %d: %q", page, key)
		}
		if page < 0 {
			require.Empty(t, s.Salvaged.Lost)
			require.True(t, maps.Equal(want, got))
		} else if len(got) < len(want) {
			require.NotEmpty(t, s.Salvaged.Lost, "page %d", page)
		}
	}
}
