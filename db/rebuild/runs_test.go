package rebuild

import (
	"bytes"
	"maps"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/filestore"
)

// read returns what a File has.
func read(t testing.TB, path string) (records map[string]string, versions map[string]filestore.LastUpdate, m filestore.Meta) {
	t.Helper()
	f, err := Open(path, false, true)
	require.NoError(t, err)
	defer f.Close()
	records, versions = map[string]string{}, map[string]filestore.LastUpdate{}
	last := ""
	require.NoError(t, f.Records(func(key, value []byte) error {
		require.True(t, len(records) == 0 || string(key) > last)
		last = string(key)
		records[last] = string(value)
		return nil
	}))
	require.Equal(t, Sums{f.Meta().Count, f.Meta().Bytes, f.Meta().Sum}, f.Bottom())
	n := 0
	require.NoError(t, f.Versions(func(key []byte, e filestore.LastUpdate) error {
		require.True(t, n == 0 || string(key) > last)
		last = string(key)
		versions[last] = e
		n++
		return nil
	}))
	return records, versions, f.Meta()
}

func sizeOf(records map[string]string) (size int64, sum uint64) {
	for k, v := range records {
		size += int64(len(k) + len(v))
		sum += filestore.RecordSum([]byte(k), []byte(v))
	}
	return size, sum
}

func TestRunsAreRead(t *testing.T) {
	for name, s := range shapes() {
		for seed := range uint64(3) {
			f := withRuns(t, seed, s)
			records, versions, _ := read(t, f.path)
			require.True(t, maps.Equal(f.records, records), "%s %d: %d records, not %d", name, seed, len(records), len(f.records))
			require.True(t, maps.Equal(f.versions, versions), "%s %d: %d versions, not %d", name, seed, len(versions), len(f.versions))
			r, err := check(bytes.NewReader(f.data), int64(len(f.data)), nil)
			require.NoError(t, err)
			require.Empty(t, r.Damage, "%s %d", name, seed)
			size, _ := sizeOf(f.records)
			require.EqualValues(t, len(f.records), r.Records)
			require.Equal(t, size, r.Bytes)
			require.Equal(t, s.runs, r.Runs)
			require.Equal(t, s.unfinished, r.Unfinished > 0)
			n := 0
			for _, entries := range f.runs {
				n += len(entries)
			}
			if s.packed && s.merging { // parts of runs were dropped
				require.Less(t, r.Entries, int64(n))
				require.Greater(t, r.Entries, int64(n/2))
			} else {
				require.EqualValues(t, n, r.Entries)
			}
		}
	}
}

// requireWithoutRuns requires that a new file has the records and versions, exact figures, and no runs.
func (f *made) requireWithoutRuns(t *testing.T, path string) {
	t.Helper()
	records, versions, m := read(t, path)
	require.True(t, maps.Equal(f.records, records))
	require.True(t, maps.Equal(f.versions, versions))
	size, sum := sizeOf(f.records)
	require.EqualValues(t, len(f.records), m.Count)
	require.Equal(t, size, m.Bytes)
	require.Equal(t, sum, m.Sum)
	require.True(t, m.Summed)
	require.Equal(t, 1, m.Format)
	require.Zero(t, m.MergeRun)
	require.Nil(t, m.MergedTo)
	require.Equal(t, f.meta.ID, m.ID)
	removals := int64(0)
	for _, e := range f.versions {
		if e.Removed {
			removals++
		}
	}
	require.Equal(t, removals, m.Removals)
	r, err := Check(path, true, nil)
	require.NoError(t, err)
	require.Empty(t, r.Damage)
	require.Zero(t, r.Runs+r.Unfinished)
	requireSound(t, path, f.records)
}

// A file that is made from a file with runs has none: by compact, by recover, and by repair.
func TestRunsAreGoneFromANewFile(t *testing.T) {
	for name, s := range shapes() {
		f := withRuns(t, 9, s)
		t.Run(name, func(t *testing.T) {
			compacted := filepath.Join(t.TempDir(), "compacted")
			f.rewrite(t, compacted, func(b *Builder, base *File) {
				require.NoError(t, base.Records(b.Append))
				require.NoError(t, base.Versions(b.Remember))
			})
			f.requireWithoutRuns(t, compacted)
			recovered := filepath.Join(t.TempDir(), "recovered")
			f.rewrite(t, recovered, func(b *Builder, base *File) {
				b.Over(base)
				require.NoError(t, base.Versions(b.Remember))
			})
			f.requireWithoutRuns(t, recovered)
			repaired := filepath.Join(t.TempDir(), "repaired")
			f.rewrite(t, repaired, func(b *Builder, _ *File) {
				saved, err := Salvage(f.path, true, b, nil)
				require.NoError(t, err)
				require.Empty(t, saved.Lost)
				require.False(t, saved.RunsHurt)
				require.Equal(t, Sums{saved.Meta.Count, saved.Meta.Bytes, saved.Meta.Sum}, saved.Tree)
				require.Equal(t, s.runs, saved.Runs)
			})
			f.requireWithoutRuns(t, repaired)
		})
	}
}

// rewrite makes a new file of this one.
func (f *made) rewrite(t *testing.T, path string, fill func(b *Builder, base *File)) {
	t.Helper()
	base, err := Open(f.path, false, true)
	require.NoError(t, err)
	defer base.Close()
	b, err := New(path, Options{Memory: 1 << 18})
	require.NoError(t, err)
	fill(b, base)
	require.NoError(t, b.Commit(base.Meta()))
}

// What is set, removed, faded and forgotten over a file with runs.
func TestUpdatesOverRuns(t *testing.T) {
	f := withRuns(t, 3, shapes()["lww merging"])
	path := filepath.Join(t.TempDir(), "b")
	f.rewrite(t, path, func(b *Builder, base *File) {
		b.Over(base)
		require.NoError(t, base.Versions(b.Remember))
		n := 0
		for key := range maps.Clone(f.records) {
			switch n++; n % 4 {
			case 0:
				require.NoError(t, b.Remove([]byte(key)))
				require.NoError(t, b.Fade([]byte(key)))
				delete(f.records, key)
				if e, ok := f.versions[key]; ok {
					e.Removed = true
					f.versions[key] = e
				}
			case 1:
				e := filestore.LastUpdate{Version: filestore.Version{Stamp: 1 << 40}}
				require.NoError(t, b.Set([]byte(key), stored("new")))
				require.NoError(t, b.Fade([]byte(key)))
				require.NoError(t, b.Fade([]byte(key)))
				require.NoError(t, b.Remember([]byte(key), e))
				f.records[key], f.versions[key] = string(stored("new")), e
			}
		}
		require.NoError(t, b.Fade([]byte("a key that nobody knows")))
	})
	f.requireWithoutRuns(t, path)
}
