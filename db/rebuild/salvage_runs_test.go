package rebuild

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/run"
)

// small are files with runs whose every page, or very many bytes, can be damaged.
func small() map[string]shape {
	return map[string]shape{
		"inline":     {records: 20, keys: 60, runs: 2, entries: 3},
		"unfinished": {records: 100, keys: 300, runs: 3, entries: 200, unfinished: true},
		"merging":    {records: 150, keys: 500, runs: 4, entries: 150, merging: true},
		"lww":        {records: 100, keys: 300, runs: 4, entries: 150, lww: true, unfinished: true},
		"packed":     {records: 200, keys: 500, runs: 3, entries: 100, packed: true, merging: true},
		"all packed": {records: 200, keys: 500, packed: true},
	}
}

// readDamaged returns what a File has of damaged bytes, as compact reads it; false: it noticed.
func readDamaged(data []byte) (map[string]string, bool) {
	f, got := &File{}, map[string]string{}
	if f.load(bytes.NewReader(data), int64(len(data))) != nil {
		return nil, false
	}
	err := f.Records(func(key, value []byte) error {
		got[string(key)] = string(value)
		return nil
	})
	m := f.Meta()
	return got, err == nil && f.Bottom() == Sums{m.Count, m.Bytes, m.Sum}
}

// requireTold requires that damage is told of, or costs nothing.
func (f *made) requireTold(t *testing.T, bad []byte, what string, at int) (certain bool) {
	t.Helper()
	s, got := salvaged(t, bad)
	if s.Certain() {
		require.True(t, maps.Equal(f.records, got), "%s %d: %d records of %d, and nobody says so: %v", what, at, len(got), len(f.records), s.Salvaged.Lost)
	} else if s.Tree == (Sums{s.Meta.Count, s.Meta.Bytes, s.Meta.Sum}) {
		require.NotZero(t, s.Found+s.PassedOver, "%s %d", what, at)
	}
	if got, ok := readDamaged(bad); ok && at >= 2*os.Getpagesize() { // a lost meta page: the state before is read, and then brought up to date from the log
		require.True(t, maps.Equal(f.records, got), "%s %d: %d records of %d were read", what, at, len(got), len(f.records))
	}
	r, err := check(bytes.NewReader(bad), int64(len(bad)), nil)
	require.NoError(t, err)
	if r.Found == 0 {
		require.True(t, s.Certain(), "%s %d: %v", what, at, s.Salvaged.Lost)
		require.EqualValues(t, len(f.records), r.Records)
	}
	return s.Certain()
}

// requireOnceWritten requires that a key has the value it should have, or that the report names the
// key, and the value is an older one.
func (f *made) requireOnceWritten(t *testing.T, s *salvager, got map[string]string, page int) {
	t.Helper()
	for key := range maps.Clone(f.records) {
		if _, ok := got[key]; !ok {
			got[key] = "" // no record
		}
	}
	for key, value := range got {
		if value == f.records[key] {
			continue
		}
		once := value == "" || value == f.tree[key]
		for _, entries := range f.runs {
			once = once || bytes.HasSuffix(entries[key], []byte(value))
		}
		require.True(t, s.tells(key), "page %d: %q has %q, and nobody says so: %v", page, key, value, s.Salvaged.Lost)
		require.True(t, once || s.Doubtful > 0 || s.Stale, "page %d: %q never had %q", page, key, value)
	}
}

func TestEveryPageDestroyedWithRuns(t *testing.T) {
	size := os.Getpagesize()
	kinds := small()
	kinds["large"] = shape{records: 100, keys: 300, runs: 3, entries: 150, large: true}
	for name, kind := range kinds {
		f := withRuns(t, 5, kind)
		certain := 0
		for page := range len(f.data) / size {
			if readHead(f.data[page*size:]).id != uint64(page) {
				continue // the middle of a large value or a filter
			}
			bad := bytes.Clone(f.data)
			copy(bad[page*size:], bytes.Repeat([]byte{byte(page) & 1 * 0xA5}, size))
			if f.requireTold(t, bad, name, page*size) {
				certain++
			}
			s, got := salvaged(t, bad)
			f.requireOnceWritten(t, s, got, page)
		}
		require.NotZero(t, certain, name)
	}
}

// Whatever byte changes in a file with runs: what is saved or read is what was written, or the
// damage is told of.
func TestAFlippedByteIsToldWithRuns(t *testing.T) {
	for name, kind := range small() {
		f := withRuns(t, 6, kind)
		rnd := rand.New(rand.NewPCG(9, 11))
		certain, told := 0, 0
		for range 400 {
			bad := bytes.Clone(f.data)
			at := rnd.IntN(len(bad))
			if rnd.IntN(2) == 0 { // where pages begin
				at = min(at/4096*4096+rnd.IntN(200), len(bad)-1)
			}
			bad[at] ^= byte(1 + rnd.IntN(255))
			if f.requireTold(t, bad, name, at) {
				certain++
			} else {
				told++
			}
		}
		require.Greater(t, certain, 50, name)
		require.Greater(t, told, 10, name)
	}
}

// Many flipped bytes must not end the program.
func TestManyFlippedBytesWithRuns(t *testing.T) {
	for _, kind := range []string{"large", "lww merging"} {
		f := withRuns(t, 8, shapes()[kind])
		rnd := rand.New(rand.NewPCG(5, 7))
		for range 60 {
			bad := bytes.Clone(f.data)
			for range 1 + rnd.IntN(20) {
				at := rnd.IntN(len(bad))
				if rnd.IntN(2) == 0 {
					at = at/4096*4096 + rnd.IntN(200)
				}
				bad[min(at, len(bad)-1)] ^= 1 << rnd.IntN(8)
			}
			salvaged(t, bad)
			readDamaged(bad)
			_, err := check(bytes.NewReader(bad), int64(len(bad)), nil)
			require.NoError(t, err)
		}
	}
}

func TestTruncatedFileWithRuns(t *testing.T) {
	f := withRuns(t, 8, shapes()["lww"])
	for n := 0; n < len(f.data); n += 5000 {
		s, _ := salvaged(t, f.data[:n])
		require.False(t, s.Certain())
		_, ok := readDamaged(f.data[:n])
		require.False(t, ok)
	}
}

func FuzzRuns(f *testing.F) {
	made := withRuns(f, 1, shape{records: 20, keys: 60, runs: 3, entries: 60, lww: true})
	f.Add(made.data, uint32(5000), byte(1))
	f.Fuzz(func(t *testing.T, data []byte, at uint32, value byte) {
		if len(data) > 0 {
			data = bytes.Clone(data)
			data[int(at)%len(data)] = value
		}
		salvaged(t, data)
		readDamaged(data)
		_, err := check(bytes.NewReader(data), int64(len(data)), nil)
		require.NoError(t, err)
	})
}

// branches returns the pages that are the roots of runs with several pages.
func (f *made) branches(t *testing.T) (roots []uint64) {
	t.Helper()
	file := &File{}
	require.NoError(t, file.load(bytes.NewReader(f.data), int64(len(f.data))))
	for _, r := range file.runs {
		if p, _, err := file.read(r.root, flagBranch, nil); err == nil {
			roots = append(roots, p.id)
		}
	}
	return roots
}

// The pages below a lost branch of a run are found, and are used as long as it is certain to which
// run they belong.
func TestPagesOfALostBranchOfARun(t *testing.T) {
	f := withRuns(t, 4, shape{records: 500, keys: 3000, runs: 3, entries: 1500, lww: true, large: true})
	roots := f.branches(t)
	require.Len(t, roots, 3)
	size := os.Getpagesize()
	destroy := func(data []byte, page uint64) { clear(data[int(page)*size:][:size]) }
	for _, root := range roots {
		bad := bytes.Clone(f.data)
		destroy(bad, root)
		to := newSaved()
		s := newSalvager(bytes.NewReader(bad), int64(len(bad)), to, nil)
		require.NoError(t, s.run())
		require.True(t, maps.Equal(f.records, to.records))
		require.True(t, maps.Equal(f.versions, to.versions))
		require.True(t, s.Certain())
		require.NotZero(t, s.Orphans)
		require.Zero(t, s.PassedOver)
		require.NotZero(t, s.Found)
	}
	bad := bytes.Clone(f.data)
	destroy(bad, roots[0])
	destroy(bad, roots[2])
	s, _ := salvaged(t, bad)
	require.False(t, s.Certain())
	require.Greater(t, s.PassedOver, 10)
	require.Zero(t, s.Orphans, "nobody knows which of two runs the pages belong to")
	require.Equal(t, len(f.runs[1]), int(s.Entries))
}

// A flipped bit in a filter costs no record, but a server would not find one.
func TestFilterIsChecked(t *testing.T) {
	f := withRuns(t, 4, shape{records: 10, keys: 3000, runs: 1, entries: 1500})
	found := map[string]bool{}
	stored := f.filter(t)
	size := len(stored) - 8
	for at := 0; bytes.Contains(f.data[at:], stored); at++ {
		at += bytes.Index(f.data[at:], stored)
		bad := bytes.Clone(f.data)
		bad[at+9] ^= 1
		r, err := check(bytes.NewReader(bad), int64(len(bad)), nil)
		require.NoError(t, err)
		if r.Found > 0 {
			require.ErrorContains(t, &r.Damage[0], "the filter of run 5 does not match its checksum")
			found["checksum"] = true
		}
		clear(bad[at : at+size])
		binary.LittleEndian.PutUint64(bad[at+size:], xxhash.Sum64(bad[at:at+size]))
		r, err = check(bytes.NewReader(bad), int64(len(bad)), nil)
		require.NoError(t, err)
		if r.Found > 0 {
			require.ErrorContains(t, &r.Damage[0], "the filter of run 5 denies")
			found["denied"] = true
		}
		s, got := salvaged(t, bad)
		require.True(t, s.Certain())
		require.True(t, maps.Equal(f.records, got))
	}
	require.Len(t, found, 2)
}

// filter returns the filter of the only run, as it is stored.
func (f *made) filter(t *testing.T) (stored []byte) {
	t.Helper()
	file := &File{}
	require.NoError(t, file.load(bytes.NewReader(f.data), int64(len(f.data))))
	for e, err := range file.elements(file.runs[0].bucket, span{[]byte{run.FilterKey}, []byte{run.FilterKey + 1}}) {
		require.NoError(t, err)
		stored = bytes.Clone(e.value)
	}
	return stored
}

// What a run says of itself is compared with what it has.
func TestFiguresOfARunAreChecked(t *testing.T) {
	f := withRuns(t, 2, shapes()["small"])
	db, err := bolt.Open(f.path, 0o600, &bolt.Options{NoSync: true})
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(run.Bucket)).Bucket([]byte{0, 0, 0, 0, 0, 0, 0, 8})
		c := b.Cursor()
		last, _ := c.Last()
		require.Equal(t, byte(run.BlockKey), last[0])
		return c.Delete()
	}))
	require.NoError(t, db.Close())
	r, err := Check(f.path, true, nil)
	require.NoError(t, err)
	require.Equal(t, 1, r.Found)
	require.ErrorContains(t, &r.Damage[0], "run 8 has")
	file, err := Open(f.path, false, true)
	require.NoError(t, err)
	defer file.Close()
	require.ErrorContains(t, file.Records(func(_, _ []byte) error { return nil }), "is damaged: run 8: it has")
	s, err := Salvage(f.path, true, newSaved(), nil)
	require.NoError(t, err)
	require.True(t, s.RunsHurt)
}
