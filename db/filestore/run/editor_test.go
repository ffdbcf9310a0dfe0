package run

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// change changes packed records in one transaction and compares what they were; "" removes.
func change(t *testing.T, file *bolt.DB, e *Editor, want, changes map[string]string) {
	t.Helper()
	require.NoError(t, file.Update(func(tx *bolt.Tx) error {
		require.NoError(t, e.Begin(tx))
		for _, key := range slices.Sorted(maps.Keys(changes)) {
			value := changes[key]
			var old []byte
			var found bool
			var err error
			if value == "" {
				old, found, err = e.Remove([]byte(key))
			} else {
				old, found, err = e.Set([]byte(key), []byte(value))
			}
			require.NoError(t, err)
			was, there := want[key]
			require.Equal(t, there, found, "%q", key)
			require.Equal(t, was, string(old), "%q", key)
			if delete(want, key); value != "" {
				want[key] = value
			}
		}
		return e.End()
	}))
}

// packedBlocks requires that the file has these packed records and nothing else, in sound blocks,
// and returns how full each block is.
func packedBlocks(t *testing.T, file *bolt.DB, want map[string]string) (full []float64) {
	t.Helper()
	require.NoError(t, file.View(func(tx *bolt.Tx) error {
		b, room := tx.Bucket([]byte(PackedBucket)), blockRoom(os.Getpagesize())
		got, last := 0, []byte(nil)
		require.NoError(t, b.ForEach(func(name, raw []byte) error {
			require.EqualValues(t, PackedKey, name[0])
			require.LessOrEqual(t, len(raw)+len(name)-1, room)
			full = append(full, float64(len(raw)+len(name)-1)/float64(room))
			bl, err := openBlock(raw, true)
			require.NoError(t, err)
			for i := range bl.len() {
				key, value, err := bl.entry(i)
				require.NoError(t, err)
				require.True(t, got == 0 || bytes.Compare(key, last) > 0)
				require.Equal(t, want[string(key)], string(value))
				last, got = key, got+1
			}
			require.Equal(t, name[1:], last)
			return nil
		}))
		require.Equal(t, len(want), got)
		return nil
	}))
	return full
}

func TestEditorModel(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 3))
		file, e, want := openFile(t), &Editor{}, map[string]string{}
		keys := []int{5, 60, 1000, 8000}[seed%4]
		for range 12 {
			changes := map[string]string{}
			for range r.IntN(keys) {
				key := fmt.Sprintf("%05d", r.IntN(keys))
				if r.IntN(50) == 0 {
					key += string(bytes.Repeat([]byte("k"), r.IntN(500)))
				}
				if value := bytes.Repeat([]byte("v"), 1+r.IntN(150)); r.IntN(3) > 0 {
					changes[key] = string(value)
				} else if r.IntN(40) == 0 {
					changes[key] = string(bytes.Repeat(value, 3))
				} else {
					changes[key] = ""
				}
			}
			change(t, file, e, want, changes)
			packedBlocks(t, file, want)
		}
		requireSound(t, file)
		require.NoError(t, file.View(func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte(PackedBucket))
			for key, value := range want {
				got, found, err := FindPacked(b, []byte(key))
				require.NoError(t, err)
				require.True(t, found)
				require.Equal(t, value, string(got))
				_, found, err = FindPacked(b, []byte(key+"~"))
				require.NoError(t, err)
				require.False(t, found)
			}
			return nil
		}))
	}
}

// randomRecords returns records of 116 bytes with random keys.
func randomRecords(r *rand.Rand, n int) map[string]string {
	records := map[string]string{}
	for range n {
		records[fmt.Sprintf("%016x", r.Uint64())] = fmt.Sprintf("%0100d", r.Uint64())
	}
	return records
}

func average(list []float64) (sum float64) {
	for _, n := range list {
		sum += n
	}
	return sum / float64(len(list))
}

// When a part of the records changes everywhere, all blocks are full afterwards.
func TestMergesLeaveFullBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	file, e, want := openFile(t), &Editor{}, map[string]string{}
	for range 6 {
		change(t, file, e, want, randomRecords(r, 5000))
		require.Greater(t, average(packedBlocks(t, file, want)), 0.94)
	}
}

// requireSound requires that bbolt finds each page of a file in one place.
func requireSound(t *testing.T, file *bolt.DB) {
	t.Helper()
	require.NoError(t, file.View(func(tx *bolt.Tx) (err error) {
		for damage := range tx.Check() {
			err = errors.Join(err, damage)
		}
		return err
	}))
}

// When records come in everywhere, the pages are full afterwards: each has two blocks, and few
// blocks stand in two pages.
func TestMergesLeaveFullPages(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	file, e, want := openFile(t), &Editor{}, map[string]string{}
	for round := range 7 {
		records := randomRecords(r, 20_000)
		if round > 0 {
			records = randomRecords(r, len(want)/6)
		}
		change(t, file, e, want, records)
		requireSound(t, file)
		require.NoError(t, file.View(func(tx *bolt.Tx) error {
			s := tx.Bucket([]byte(PackedBucket)).Stats()
			require.Greater(t, float64(s.KeyN)/float64(s.LeafPageN+s.LeafOverflowN), 1.93)
			require.Less(t, s.LeafOverflowN*8, s.LeafPageN)
			return nil
		}))
	}
}

// A change of few blocks does not write their neighbours.
func TestLoneRecordsLeaveOtherPagesAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	file, e, want := openFile(t), &Editor{}, map[string]string{}
	change(t, file, e, want, randomRecords(r, 20_000))
	require.NoError(t, file.Update(func(tx *bolt.Tx) error {
		require.NoError(t, e.Begin(tx))
		for _, key := range slices.Sorted(maps.Keys(randomRecords(r, 10))) {
			_, _, err := e.Set([]byte(key), []byte("v"))
			require.NoError(t, err)
		}
		require.NoError(t, e.End())
		require.LessOrEqual(t, e.bucket.FillPercent, 1.0)
		return nil
	}))
}

// Records that come in order leave no gaps, in however many transactions they come.
func TestRecordsInOrderLeaveNoGaps(t *testing.T) {
	file, e, want := openFile(t), &Editor{}, map[string]string{}
	for i := range 300 {
		changes := map[string]string{}
		for j := range 23 {
			changes[fmt.Sprintf("%016d", 23*i+j)] = fmt.Sprintf("%0100d", j)
		}
		change(t, file, e, want, changes)
	}
	require.Greater(t, average(packedBlocks(t, file, want)), 0.9)
}

// A lone new record changes its block alone, and leaves two blocks that have room for others.
func TestALoneRecordSplitsItsBlock(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	file, e, want := openFile(t), &Editor{}, map[string]string{}
	change(t, file, e, want, randomRecords(r, 5000))
	half := func(full []float64) (n int) {
		for _, f := range full {
			if f > 0.4 && f < 0.7 {
				n++
			}
		}
		return n
	}
	before := packedBlocks(t, file, want)
	change(t, file, e, want, randomRecords(r, 1))
	after := packedBlocks(t, file, want)
	require.Len(t, after, len(before)+1)
	require.Equal(t, half(before)+2, half(after))
	require.Len(t, e.gone, 1)
}

// Removals leave no row of nearly empty blocks.
func TestRemovalsJoinBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	file, e, want := openFile(t), &Editor{}, map[string]string{}
	change(t, file, e, want, randomRecords(r, 5000))
	for range 5 {
		changes := map[string]string{}
		for key := range want {
			if r.IntN(2) == 0 {
				changes[key] = ""
			}
		}
		change(t, file, e, want, changes)
		require.Greater(t, average(packedBlocks(t, file, want)), 0.7)
	}
	change(t, file, e, want, func() map[string]string {
		changes := maps.Clone(want)
		for key := range changes {
			changes[key] = ""
		}
		return changes
	}())
	require.Empty(t, packedBlocks(t, file, want))
}

// A damaged block is not rewritten with a checksum that makes it look sound.
func TestEditorNoticesADamagedBlock(t *testing.T) {
	file, e, want := openFile(t), &Editor{}, map[string]string{}
	change(t, file, e, want, randomRecords(rand.New(rand.NewPCG(5, 5)), 300))
	require.NoError(t, file.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(PackedBucket))
		name, raw := b.Cursor().First()
		raw = bytes.Clone(raw)
		raw[len(raw)/2] ^= 1
		return b.Put(bytes.Clone(name), raw)
	}))
	require.ErrorIs(t, file.Update(func(tx *bolt.Tx) error {
		require.NoError(t, e.Begin(tx))
		if _, _, err := e.Set([]byte("!"), []byte("v")); err != nil {
			return err
		}
		return e.End()
	}), ErrDamaged)
}

// What a merge drops of a run is what its figures lose; the rest can still be read.
func TestDropUpTo(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 8))
		all := randomEntries(r, 3000)
		file := openFile(t)
		made := write(t, file, 7, all, 1000)
		live := func(key, flagged []byte) (bool, int) { return flagged[0]%2 == 0, len(key) + len(flagged) }
		left := made.Info
		for _, cut := range []int{10, len(all) / 2, len(all) - 1} {
			require.NoError(t, file.Update(func(tx *bolt.Tx) (err error) {
				left, err = DropUpTo(tx, made, left, all[cut].key, live)
				return err
			}))
			require.NoError(t, file.View(func(tx *bolt.Tx) error {
				runs, err := Load(tx)
				require.NoError(t, err)
				require.Equal(t, left, runs[0].Info)
				var counted Info
				c := runs[0].Cursor(tx, false)
				c.First()
				for key, flagged := c.Entry(); key != nil; key, flagged = c.Entry() {
					counted.Entries++
					counted.Bytes += int64(len(key) + len(flagged))
					if is, n := live(key, flagged); is {
						counted.Live++
						counted.LiveBytes += int64(n)
					}
					c.Next()
				}
				require.NoError(t, c.Err())
				counted.About, counted.AboutBytes = left.About, left.AboutBytes
				require.Equal(t, left, counted)
				for _, e := range all[cut+1:] {
					flagged, found, err := runs[0].Find(tx, e.key)
					require.NoError(t, err)
					require.True(t, found)
					require.True(t, bytes.Equal(e.flagged, flagged))
				}
				return nil
			}))
		}
		require.Zero(t, left.Entries)
	}
}

// What a merge has passed is dropped, even if a large value has become damaged since.
func TestDropUpToNeedsNoLargeValues(t *testing.T) {
	file := openFile(t)
	value := bytes.Repeat([]byte{7}, 50_000)
	made := write(t, file, 1, []entry{{[]byte("a"), value}}, 10)
	place := append([]byte{LargeKey}, 'a')
	require.NoError(t, file.Update(func(tx *bolt.Tx) error {
		stored := bytes.Clone(made.In(tx).Get(place))
		stored[1000] ^= 1
		require.NoError(t, made.In(tx).Put(place, stored))
		left, err := DropUpTo(tx, made, made.Info, []byte("a"), func(key, flagged []byte) (bool, int) {
			return false, 0
		})
		require.NoError(t, err)
		require.Zero(t, left.Bytes)
		require.Nil(t, made.In(tx).Get(place))
		return nil
	}))
}
