package run

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

type entry struct{ key, flagged []byte }

// randomEntries returns sorted entries with different keys; some keys are empty or long, some
// values large.
func randomEntries(r *rand.Rand, n int) []entry {
	byKey := map[string][]byte{}
	for range n {
		key := make([]byte, r.IntN(24))
		if r.IntN(50) == 0 {
			key = make([]byte, r.IntN(3000))
		}
		for i := range key {
			key[i] = byte(r.IntN(4)) * 85
		}
		value := bytes.Repeat([]byte{byte(r.IntN(256))}, 1+r.IntN(300))
		if r.IntN(200) == 0 {
			value = bytes.Repeat(value, 300)
		}
		byKey[string(key)] = value
	}
	var all []entry
	for k, v := range byKey {
		all = append(all, entry{[]byte(k), v})
	}
	slices.SortFunc(all, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	return all
}

func openFile(t *testing.T) *bolt.DB {
	file, err := bolt.Open(filepath.Join(t.TempDir(), "a"), 0o600, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	return file
}

// write writes a run in transactions of at most perTx entries.
func write(t *testing.T, file *bolt.DB, number uint64, all []entry, perTx int) *Run {
	w := NewWriter(number, int64(len(all)), 1<<20)
	var made *Run
	for done := false; !done; {
		require.NoError(t, file.Update(func(tx *bolt.Tx) error {
			require.NoError(t, w.Begin(tx))
			for n := 0; n < perTx && len(all) > 0 && !w.Full(); n++ {
				e := all[0]
				all = all[1:]
				require.NoError(t, w.Add(e.key, e.flagged, e.flagged[0]%2 == 0, len(e.key)+len(e.flagged)))
			}
			if done = len(all) == 0; !done {
				return w.End()
			}
			var err error
			made, err = w.Finish(11, 12)
			return err
		}))
	}
	return made
}

func TestRunHoldsWhatWasWritten(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		all := randomEntries(r, []int{1, 5, 300, 5000}[seed%4])
		file := openFile(t)
		made := write(t, file, seed, all, 1+r.IntN(2000))
		require.NoError(t, file.View(func(tx *bolt.Tx) error {
			runs, err := Load(tx)
			require.NoError(t, err)
			require.Equal(t, []*Run{made}, runs)
			require.EqualValues(t, len(all), made.Entries)
			for _, e := range all {
				flagged, found, err := made.Find(tx, e.key)
				require.NoError(t, err)
				require.True(t, found)
				require.True(t, bytes.Equal(e.flagged, flagged))
				require.True(t, made.MayHave(Hash(e.key)))
			}
			for range 200 {
				key := randomEntries(r, 1)[0].key
				at, there := slices.BinarySearchFunc(all, key, func(e entry, k []byte) int { return bytes.Compare(e.key, k) })
				_, found, err := made.Find(tx, key)
				require.NoError(t, err)
				require.Equal(t, there, found)
				walk(t, made.Cursor(tx, false), key, there, all[at:])
				before := slices.Clone(all[:at])
				if there {
					before = append(before, all[at])
				}
				slices.Reverse(before)
				walk(t, made.Cursor(tx, true), key, there, before)
			}
			findAll(t, r, tx, made, all)
			forward, backward := made.Cursor(tx, false), made.Cursor(tx, true)
			forward.First()
			rest(t, forward, all, len(all))
			backward.First()
			slices.Reverse(all)
			rest(t, backward, all, len(all))
			return nil
		}))
	}
}

// findAll looks up all entries with a Finder, and keys between them, in order and in disorder.
func findAll(t *testing.T, r *rand.Rand, tx *bolt.Tx, made *Run, all []entry) {
	want := map[string][]byte{}
	var keys [][]byte
	for _, e := range all {
		want[string(e.key)] = e.flagged
		keys = append(keys, e.key, append(bytes.Clone(e.key), 1))
	}
	keys = append(keys, []byte{}, bytes.Repeat([]byte{0xFF}, 30))
	r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for range 2 {
		f, err := made.Finder(tx)
		require.NoError(t, err)
		places := make([]Place, len(keys))
		for i, key := range keys {
			places[i] = f.Seek(key)
		}
		for i, key := range keys {
			f.Warm(places[i])
			flagged, found, err := f.In(places[i], key)
			if value, there := want[string(key)]; err != nil || found != there || !bytes.Equal(value, flagged) {
				require.Fail(t, "another entry", "%q: %v, %v, %d bytes instead of %d", key, err, found, len(flagged), len(value))
			}
		}
		slices.SortFunc(keys, bytes.Compare)
	}
}

// walk compares what a cursor meets from key on with want.
func walk(t *testing.T, c *Cursor, key []byte, exact bool, want []entry) {
	require.Equal(t, exact, c.Seek(key))
	rest(t, c, want, 50)
}

func rest(t *testing.T, c *Cursor, want []entry, most int) {
	for i, e := range want {
		if i == most {
			return
		}
		key, flagged := c.Entry()
		require.NotNil(t, key)
		require.True(t, bytes.Equal(e.key, key) && bytes.Equal(e.flagged, flagged), "entry %d: %x, not %x", i, key, e.key)
		c.Next()
	}
	key, _ := c.Entry()
	require.Nil(t, key)
	require.NoError(t, c.Err())
}

func TestUnfinishedRunIsIgnoredAndDropped(t *testing.T) {
	file := openFile(t)
	require.NoError(t, file.Update(func(tx *bolt.Tx) error {
		w := NewWriter(7, 10, 0)
		require.NoError(t, w.Begin(tx))
		require.NoError(t, w.Add([]byte("k"), []byte("v"), true, 2))
		return w.End()
	}))
	require.NoError(t, file.Update(func(tx *bolt.Tx) error {
		runs, err := Load(tx)
		require.NoError(t, err)
		require.Empty(t, runs)
		require.True(t, Any(tx))
		require.NoError(t, DropUnfinished(tx))
		require.False(t, Any(tx))
		return nil
	}))
}

func TestFilterIsSeldomWrong(t *testing.T) {
	const keys = 100_000
	f := newFilter(keys)
	for i := range keys {
		f.add(Hash(fmt.Appendf(nil, "k%d", i)))
	}
	wrong := 0
	for i := range keys {
		require.True(t, f.MayHave(Hash(fmt.Appendf(nil, "k%d", i))))
		if f.MayHave(Hash(fmt.Appendf(nil, "other%d", i))) {
			wrong++
		}
	}
	require.Less(t, wrong, keys/500)
}

func TestDamageInABlockIsNoticed(t *testing.T) {
	var b blockBuilder
	for i := range 40 {
		b.add(fmt.Appendf(nil, "key%04d", i), fmt.Appendf(nil, "value %d", i))
	}
	whole := b.finish(nil)
	for i := range whole {
		for _, bit := range []byte{1, 0x80} {
			raw := bytes.Clone(whole)
			raw[i] ^= bit
			_, err := openBlock(raw, true)
			require.ErrorIs(t, err, ErrDamaged)
			bl, err := openBlock(raw, false) // must not panic
			if err != nil {
				continue
			}
			new(Finder).Warm(raw)
			_, _, _ = bl.search([]byte("key0020"))
			_, _, _ = bl.entry(bl.len() - 1)
		}
	}
	for n := range len(whole) {
		_, err := openBlock(whole[:n], true)
		require.ErrorIs(t, err, ErrDamaged)
	}
}

func BenchmarkMayHave(b *testing.B) {
	f := newFilter(500_000)
	key := []byte("key000000")
	for i := 0; b.Loop(); i++ {
		key[5] = byte(i)
		f.MayHave(Hash(key))
	}
}

func TestDamageInALargeValueIsNoticed(t *testing.T) {
	large := bytes.Repeat([]byte("large"), maxInBlock)
	file := openFile(t)
	made := write(t, file, 3, []entry{{[]byte("k"), large}}, 10)
	place := append([]byte{LargeKey}, 'k')
	require.NoError(t, file.Update(func(tx *bolt.Tx) error {
		raw := bytes.Clone(made.In(tx).Get(place))
		raw[len(raw)/2] ^= 4
		return made.In(tx).Put(place, raw)
	}))
	require.NoError(t, file.View(func(tx *bolt.Tx) error {
		c := made.Cursor(tx, false)
		c.First()
		require.ErrorIs(t, c.Err(), ErrDamaged)
		return nil
	}))
}

func TestAFinishedRunIsNotWrittenTo(t *testing.T) {
	file := openFile(t)
	write(t, file, 3, []entry{{[]byte("k"), []byte("v")}}, 10)
	require.ErrorContains(t, file.Update(func(tx *bolt.Tx) error { return NewWriter(3, 1, 0).Begin(tx) }), "already")
}
