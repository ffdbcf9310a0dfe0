package rebuild

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/filestore"
	"gotycoon/db/filestore/run"
	"gotycoon/ulog"
)

// used returns a file that a store has written in several checkpoints, so that it has free pages,
// and its records.
func used(t testing.TB, records int) ([]byte, map[string]string) {
	t.Helper()
	path := t.TempDir() + "/a.kct"
	s, err := filestore.Open(path, filestore.Options{})
	require.NoError(t, err)
	want := map[string]string{}
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range ulog.Stamp(6) {
		for range records / 4 {
			u := ulog.Update{Op: ulog.OpSet, Key: fmt.Appendf(nil, "key%06d", rnd.IntN(records))}
			u.Value = fmt.Appendf(nil, "\xff\xff\xff\xff\xff%d.%s", i, bytes.Repeat([]byte("v"), rnd.IntN(60)))
			if rnd.IntN(100) == 0 {
				u.Value = append(u.Value, make([]byte, 9000)...)
			}
			if rnd.IntN(5) == 0 {
				u.Op, u.Value = ulog.OpRemove, nil
				delete(want, string(u.Key))
			} else {
				want[string(u.Key)] = string(u.Value)
			}
			s.Apply(i+1, []ulog.Update{u})
		}
		require.NoError(t, s.Merge())
	}
	require.NoError(t, s.Close())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	m, err := newestMeta(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return data[:m.end*uint64(m.pageSize)], want // bbolt makes files larger than they need to be
}

// saved is a Sink that keeps what it is given.
type saved struct {
	records  map[string]string
	versions map[string]filestore.LastUpdate
}

func newSaved() *saved { return &saved{map[string]string{}, map[string]filestore.LastUpdate{}} }

func (s *saved) Set(key, value []byte) error {
	s.records[string(key)] = string(value)
	return nil
}

func (s *saved) Remove(key []byte) error {
	delete(s.records, string(key))
	return nil
}

func (s *saved) Remember(key []byte, e filestore.LastUpdate) error {
	s.versions[string(key)] = e
	return nil
}

func (s *saved) Fade(key []byte) error {
	if e, ok := s.versions[string(key)]; ok {
		e.Removed = true
		s.versions[string(key)] = e
	}
	return nil
}

func salvaged(t testing.TB, data []byte) (*salvager, map[string]string) {
	t.Helper()
	got := newSaved()
	s := newSalvager(bytes.NewReader(data), int64(len(data)), got, nil)
	require.NoError(t, s.run())
	return s, got.records
}

// tells reports whether the report says that the record of a key may not be the written one.
func (s *salvager) tells(key string) bool {
	if s.Stale || s.Doubtful > 0 || s.Meta.Format == 0 || s.RunsHurt && len(s.runs) == 0 {
		return true
	}
	s.lost = joined(s.lost)
	told := s.missing([]byte("\x01" + key))
	for _, r := range s.runs {
		told = told || r.hides(run.BlockKey, []byte(key)) || r.hides(run.LargeKey, []byte(key))
	}
	return told
}

func TestSoundFile(t *testing.T) {
	for _, n := range []int{0, 10, 3000} {
		data, want := used(t, n)
		r, err := check(bytes.NewReader(data), int64(len(data)), nil)
		require.NoError(t, err)
		require.Empty(t, r.Damage)
		require.EqualValues(t, len(want), r.Records)
		s, got := salvaged(t, data)
		require.Empty(t, s.Salvaged.Lost)
		require.True(t, maps.Equal(want, got))
		require.Zero(t, s.Doubtful+s.Orphans)
	}
}

// Whatever page is destroyed: every record is saved, or the report tells that its key may be
// missing. Nothing is saved that was not there.
func TestEveryPageDestroyed(t *testing.T) {
	data, want := used(t, 900)
	size := os.Getpagesize()
	for page := range len(data) / size {
		if readHead(data[page*size:]).id != uint64(page) {
			continue // the middle of a large value, which has no checksum
		}
		for _, fill := range []byte{0, 0xA5} {
			bad := bytes.Clone(data)
			copy(bad[page*size:], bytes.Repeat([]byte{fill}, size))
			r, err := check(bytes.NewReader(bad), int64(len(bad)), nil)
			require.NoError(t, err)
			s, got := salvaged(t, bad)
			for k, v := range got {
				require.True(t, want[k] == v || s.tells(k), "page %d: %q", page, k)
			}
			for k, v := range want {
				if got[k] != v {
					require.True(t, s.tells(k), "page %d: %q is missing and nobody says so: %v", page, k, s.Salvaged.Lost)
				}
			}
			if !maps.Equal(got, want) {
				require.NotZero(t, r.Found, "page %d", page)
				require.NotZero(t, s.Found, "page %d", page)
			}
		}
	}
}

// One destroyed meta page costs nothing, and a destroyed branch nothing either: the pages below it
// are found.
func TestNothingIsLostWithMetaOrBranch(t *testing.T) {
	data, want := used(t, 8_000)
	size := os.Getpagesize()
	branches := 0
	for page := range len(data) / size {
		h := readHead(data[page*size:])
		if page > 1 && (h.flags != flagBranch || h.id != uint64(page)) {
			continue
		}
		branches++
		bad := bytes.Clone(data)
		clear(bad[page*size : (page+1)*size])
		s, got := salvaged(t, bad)
		require.Zero(t, s.Doubtful)
		require.True(t, maps.Equal(want, got), "page %d: %d of %d, %v", page, len(got), len(want), s.Salvaged.Lost)
	}
	require.Greater(t, branches, 3)
	bad := bytes.Clone(data)
	clear(bad[:2*size])
	s, got := salvaged(t, bad)
	require.True(t, maps.Equal(want, got))
	require.Equal(t, Sums{s.Meta.Count, s.Meta.Bytes, s.Meta.Sum}, s.Tree)
	require.False(t, s.RunsHurt)
}

func TestTruncatedFile(t *testing.T) {
	data, want := used(t, 3000)
	for _, n := range []int{len(data) - 1, len(data) / 2, 40_000, 8192, 5000, 100, 3} {
		s, got := salvaged(t, data[:n])
		for k, v := range got {
			require.True(t, want[k] == v || s.tells(k))
		}
		r, err := check(bytes.NewReader(data[:n]), int64(n), nil)
		require.NoError(t, err)
		require.NotZero(t, r.Found)
	}
}

// Bits that have turned over must not end the program. What is found stays within what could have
// been there.
func TestFlippedBits(t *testing.T) {
	data, _ := used(t, 600)
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 150 {
		bad := bytes.Clone(data)
		for range 1 + rnd.IntN(20) {
			at := rnd.IntN(len(bad))
			if rnd.IntN(2) == 0 { // the beginnings of pages are where it hurts
				at = at/4096*4096 + rnd.IntN(200)
			}
			bad[min(at, len(bad)-1)] ^= 1 << rnd.IntN(8)
		}
		_, _ = salvaged(t, bad)
		_, err := check(bytes.NewReader(bad), int64(len(bad)), nil)
		require.NoError(t, err)
	}
}

func FuzzSalvage(f *testing.F) {
	data, _ := used(f, 60)
	data = data[:min(len(data), 40<<10)]
	f.Add(data, uint32(5000), byte(1))
	f.Fuzz(func(t *testing.T, data []byte, at uint32, value byte) {
		if len(data) > 0 {
			data = bytes.Clone(data)
			data[int(at)%len(data)] = value
		}
		salvaged(t, data)
		_, err := check(bytes.NewReader(data), int64(len(data)), nil)
		require.NoError(t, err)
	})
}
