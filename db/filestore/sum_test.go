package filestore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// sumOf adds up the records of a store.
func sumOf(t *testing.T, s *Store) (sum uint64) {
	t.Helper()
	require.NoError(t, s.Scan(store.Start{Edge: true}, func(key, value []byte) bool {
		sum += RecordSum(key, value)
		return true
	}))
	return sum
}

// Whatever checkpoints change, the file's checksum is that of its records.
func TestSumFollowsEveryChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.kct")
	rnd := rand.New(rand.NewPCG(7, 8))
	s := mustOpen(t, path, 4<<10)
	for i := range update.Stamp(40) {
		for range rnd.IntN(60) {
			u := set(fmt.Sprintf("key%03d", rnd.IntN(200)), fmt.Sprint("value", rnd.IntN(1000)))
			switch n := rnd.IntN(400); {
			case n == 0:
				u = update.Update{Op: update.OpClear}
			case n < 100:
				u = remove(string(u.Key))
			}
			s.Apply(i+1, []update.Update{u})
		}
		require.NoError(t, s.Merge())
		require.True(t, s.Meta().Summed)
		require.Equal(t, sumOf(t, s), s.Meta().Sum)
		if rnd.IntN(5) == 0 {
			require.NoError(t, s.Close())
			s = mustOpen(t, path, 4<<10)
		}
	}
	require.NotZero(t, s.Meta().Sum)
	require.NoError(t, s.Close())
}

func TestSumTellsRecordsApart(t *testing.T) {
	sum := func(pairs ...string) (n uint64) {
		for i := 0; i < len(pairs); i += 2 {
			n += RecordSum([]byte(pairs[i]), []byte(pairs[i+1]))
		}
		return n
	}
	require.Equal(t, sum("a", "1", "b", "2"), sum("b", "2", "a", "1"))
	require.NotEqual(t, sum("a", "1", "b", "2"), sum("a", "2", "b", "1"))
	require.NotEqual(t, sum("a", "bc"), sum("ab", "c"))
	require.NotEqual(t, sum("a", "1"), sum("a", "1", "a", "1"))
	require.NotZero(t, sum("", ""))
}

// No damaged byte of a description goes unseen.
func TestDescriptionHasAChecksum(t *testing.T) {
	m := Meta{Format: formatVersion, ID: NewID(), Stamp: 1795334401, LogDir: "/var/lib/ulog", Summed: true, Sum: 77, Count: 5, Position: []byte("place")}
	text, err := encodeMeta(m)
	require.NoError(t, err)
	again, err := decodeMeta(text)
	require.NoError(t, err)
	require.Equal(t, m, again)
	for i := range text {
		for bit := range 8 {
			bad := bytes.Clone(text)
			bad[i] ^= 1 << bit
			if got, err := decodeMeta(bad); err == nil {
				require.Equal(t, m, got, "%s", bad) // a digit of the checksum may be a capital letter
			}
		}
	}
}

// A description from before there were checksums is taken as it is, and the next checkpoint keeps
// saying that there is no sum, until all records are new.
func TestFilesWithoutASum(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.kct")
	old, err := json.Marshal(Meta{Format: formatVersion, Count: 3})
	require.NoError(t, err)
	m, err := decodeMeta(old)
	require.NoError(t, err)
	require.EqualValues(t, 3, m.Count)
	require.False(t, m.Summed)
	require.NoError(t, create(path, Meta{Format: formatVersion, ID: NewID(), Clean: true}))
	s := mustOpen(t, path, 0)
	s.Apply(1, []update.Update{set("a", "1")})
	require.NoError(t, s.Merge())
	require.False(t, s.Meta().Summed)
	require.Zero(t, s.Meta().Sum)
	s.Apply(2, []update.Update{{Op: update.OpClear}})
	s.Apply(3, []update.Update{set("b", "2")})
	require.NoError(t, s.Merge())
	require.Equal(t, sumOf(t, s), s.Meta().Sum)
	require.True(t, s.Meta().Summed)
	require.NoError(t, s.Close())
}
