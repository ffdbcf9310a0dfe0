package filestore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/run"
	"gotycoon/ulog/update"
)

// A merge that stops behind the empty key, and drops what it has passed, goes on there after a
// restart: an older run still has an older value of the empty key.
func TestAMergeStopsBehindTheEmptyKey(t *testing.T) {
	s, path := quiet(t, Options{Limit: 1 << 30})
	want := map[string]string{"": "new", "b": strings.Repeat("b", 3000)}
	s.Apply(1, []update.Update{set("", "old"), set("b", want["b"])})
	require.NoError(t, s.Checkpoint())
	s.Apply(2, []update.Update{set("", "new"), set("b", want["b"])})
	require.NoError(t, s.Checkpoint())
	s.merger.turn = 2*trimEach - 1 // now it is the turn of the newer run
	setPiece(s, 1)
	_, err := s.mergeOn(true)
	require.NoError(t, err)
	require.EqualValues(t, 1, s.runs.newest().runs[0].left.Entries, "the newer run was trimmed")
	requireEqual(t, want, s)
	s = reopened(t, s, path)
	requireEqual(t, want, s)
	require.NoError(t, s.Merge())
	requireEqual(t, want, s)
}

// The pages that a merge leaves are used again: while random records are updated, the file stays
// within one and a half times its records and does not grow any more.
func TestUpdatesDoNotMakeTheFileGrow(t *testing.T) {
	const records, rounds = 120_000, 3
	s, path := quiet(t, Options{Limit: 600 << 10})
	s.file.NoSync = true // for speed: nothing here is about crashes
	change, at, order := benchUpdates(100), update.Stamp(0), rand.New(rand.NewPCG(1, 2))
	apply := func(i int) {
		at++
		s.Apply(at, change(i))
		if s.view.Load().oldest() == nil {
			return
		}
		_, err := s.flushSome()
		require.NoError(t, err)
		for more := true; more; {
			more, err = s.mergeOn(false)
			require.NoError(t, err)
		}
	}
	for i := range records {
		apply(i)
	}
	var sizes []int64
	for range rounds {
		for range records / 2 {
			apply(order.IntN(records))
		}
		info, err := os.Stat(path)
		require.NoError(t, err)
		sizes = append(sizes, info.Size())
	}
	require.Less(t, float64(sizes[rounds-1])/float64(s.Meta().Bytes), 1.5)
	require.InEpsilon(t, sizes[0], sizes[rounds-1], 0.02, "%v", sizes)
}

// Earlier versions read every entry of a run. They refuse a file in which a merge has dropped
// entries of newer runs, though it has no packed records.
func TestEarlierVersionsRefuseAFileWithTrimmedRuns(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 1 << 30})
	for i := range 3 {
		s.Apply(update.Stamp(i+1), []update.Update{set("a", strings.Repeat("a", 3000)), set("b", strings.Repeat("b", 3000))})
		require.NoError(t, s.Checkpoint())
	}
	setPiece(s, 1)
	_, err := s.mergeOn(true)
	require.NoError(t, err)
	require.NoError(t, s.file.View(func(tx *bolt.Tx) error {
		require.False(t, run.AnyPacked(tx))
		m, err := readMeta(tx)
		require.Equal(t, formatPacked, m.Format)
		return err
	}))
	require.NoError(t, s.Merge())
	m, err := metaOf(s.file)
	require.NoError(t, err)
	require.Equal(t, formatVersion, m.Format)
}

// A damaged block stops the merge, which is told until a merge goes well. Updates are taken and
// read meanwhile.
func TestADamagedBlockIsTold(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 1 << 30})
	s.Apply(1, []update.Update{set("a", "old"), set("b", "old")})
	require.NoError(t, s.Merge())
	flip := func() {
		require.NoError(t, s.file.Update(func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte(run.PackedBucket))
			name, raw := b.Cursor().First()
			raw = bytes.Clone(raw)
			raw[len(raw)/2] ^= 1
			return b.Put(bytes.Clone(name), raw)
		}))
	}
	flip()
	require.NoError(t, s.Stats().MergeErr)
	want := map[string]string{"a": "new", "b": "new"}
	s.Apply(2, []update.Update{set("a", "new"), set("b", "new")})
	require.NoError(t, s.Checkpoint(), "the file takes updates")
	require.ErrorIs(t, s.Merge(), run.ErrDamaged)
	require.ErrorIs(t, s.Stats().MergeErr, run.ErrDamaged)
	require.NoError(t, s.Checkpoint())
	require.ErrorIs(t, s.Stats().MergeErr, run.ErrDamaged, "a checkpoint does not end it")
	value, found, err := s.Get(nil, []byte("a"), nil)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "new", string(value))
	flip()
	require.NoError(t, s.Merge())
	require.NoError(t, s.Stats().MergeErr)
	requireEqual(t, want, s)
}

// A bucket of packed records without a record would be an unknown bucket in a file of an older
// format, which programs of earlier versions take for damage.
func TestAnEmptyFileHasNoBucketOfPackedRecords(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 1 << 30})
	packed := func() (there bool) {
		require.NoError(t, s.file.View(func(tx *bolt.Tx) error {
			there = tx.Bucket([]byte(run.PackedBucket)) != nil
			return nil
		}))
		return there
	}
	last := []update.Update{{Op: update.OpClear}}
	for range 2 {
		s.Apply(s.Meta().Stamp+1, []update.Update{set("a", "1"), set("b", strings.Repeat("b", 3000))})
		require.NoError(t, s.Merge())
		require.True(t, packed())
		s.Apply(s.Meta().Stamp+1, last)
		require.NoError(t, s.Merge())
		require.False(t, packed())
		last = []update.Update{remove("a")}
	}
	s.Apply(s.Meta().Stamp+1, []update.Update{set("c", strings.Repeat("c", 3000))})
	require.NoError(t, s.Merge())
	require.False(t, packed(), "only large records")
}

// A merge walks through the whole tree once, to pack what earlier versions have left there, and
// then only looks up what it changes: a tree of large records has many pages.
func TestAMergeWalksThroughTheTreeOnce(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 1 << 30})
	large, want := strings.Repeat("v", 3000), map[string]string{}
	at := update.Stamp(0)
	put := func(key, value string) {
		at++
		s.Apply(at, []update.Update{set(key, value)})
		want[key] = value
	}
	merge := func() (passed int) {
		require.NoError(t, s.Checkpoint())
		for more := true; more; {
			setPiece(s, 10)
			before := s.Meta().MergedTo
			var err error
			more, err = s.mergeOn(true)
			require.NoError(t, err)
			if string(before) != string(s.Meta().MergedTo) {
				passed++
			}
		}
		requireEqual(t, want, s)
		return passed
	}
	for i := range 100 {
		put(fmt.Sprintf("%03d", i), large)
	}
	require.GreaterOrEqual(t, merge(), 10)
	put("050", "small")
	put("051", "small")
	put("052", large+"2")
	require.LessOrEqual(t, merge(), 2, "a new file")

	// As an earlier version has left it.
	require.NoError(t, s.file.Update(func(tx *bolt.Tx) error {
		m, err := readMeta(tx)
		require.NoError(t, err)
		for _, key := range []string{"00", "0555", "zz"} {
			m.addRecord([]byte(key), []byte("old"))
			want[key] = "old"
			require.NoError(t, tx.Bucket([]byte(DataBucket)).Put(appendBoltKey(nil, []byte(key)), []byte("old")))
		}
		m.Packed = false
		return writeMeta(tx, m)
	}))
	m, err := metaOf(s.file)
	require.NoError(t, err)
	s.desc.init(m)
	put("053", "small")
	require.GreaterOrEqual(t, merge(), 10)
	require.True(t, s.Meta().Packed)
	require.NoError(t, s.file.View(func(tx *bolt.Tx) error {
		b := bottomOf(tx)
		for _, key := range []string{"00", "0555", "zz", "050", "053"} {
			require.Nil(t, b.tree.Get(appendBoltKey(nil, []byte(key))), key)
		}
		return nil
	}))
	put("054", large+"3")
	put("zz", large+"4")
	require.LessOrEqual(t, merge(), 2)
}
