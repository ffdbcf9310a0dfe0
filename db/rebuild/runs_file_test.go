package rebuild

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore"
	"gotycoon/db/filestore/run"
	"gotycoon/ulog"
)

// shape says what a file with runs is to be like.
type shape struct {
	records, keys int // of the tree, and how many keys there are
	runs, entries int
	lww           bool
	persistent    bool
	unfinished    bool // a run above the others was not finished
	merging       bool // some of the runs are merged into a part of the tree
	large         bool // some values stand outside of their blocks
	packed        bool // the small records below the runs are packed
}

// made is a file with runs, and what it has.
type made struct {
	packed   bool
	path     string
	data     []byte
	records  map[string]string
	versions map[string]filestore.LastUpdate
	runs     []map[string][]byte // flagged values
	tree     map[string]string
	meta     filestore.Meta
}

// withRuns writes a file with bbolt and package run, and works out by itself what the file has.
func withRuns(t testing.TB, seed uint64, s shape) *made {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 77))
	f := &made{packed: s.packed, path: filepath.Join(t.TempDir(), "a.kct"), tree: map[string]string{}, versions: map[string]filestore.LastUpdate{}}
	f.meta = filestore.Meta{ID: filestore.NewID(), Clean: true, Stamp: 1e6, Checkpoints: 3, LWW: s.lww, Persistent: s.persistent, Summed: true}
	db, err := bolt.Open(f.path, 0o600, &bolt.Options{NoSync: true})
	require.NoError(t, err)
	stamp := ulog.Stamp(100)
	value := func() string {
		v := fmt.Sprintf("\xff\xff\xff\xff\xff%d.%s", stamp, bytes.Repeat([]byte("v"), rnd.IntN(60)))
		if s.large && rnd.IntN(100) == 0 {
			v += string(bytes.Repeat([]byte("L"), 15_000+rnd.IntN(40_000)))
		}
		return v
	}
	for len(f.tree) < s.records {
		key := randomKey(rnd, s.keys)
		stamp++
		f.tree[key] = value()
		if s.lww {
			f.versions[key] = filestore.LastUpdate{Version: filestore.Version{Stamp: stamp, SID: 1}}
		}
	}
	for i := range s.keys / 10 {
		if key := fmt.Sprintf("gone%05d", i); s.lww {
			f.versions[key] = filestore.LastUpdate{Version: filestore.Version{Stamp: stamp, SID: 1}, Removed: true}
		}
	}
	f.write(t, db, nil)
	for range s.runs {
		f.runs = append(f.runs, randomRun(rnd, s, &stamp, value))
	}
	if s.unfinished {
		f.runs = append(f.runs, randomRun(rnd, s, &stamp, value))
	}
	for i, entries := range f.runs {
		f.writeRun(t, db, uint64(3*i+5), entries, 1+rnd.IntN(3), i == s.runs)
	}
	f.runs = f.runs[:s.runs]
	f.records = maps.Clone(f.tree)
	before := maps.Clone(f.versions)
	for _, entries := range f.runs {
		over(entries, f.records, f.versions, nil)
	}
	if s.merging {
		to := slices.Sorted(maps.Keys(f.records))[len(f.records)/3]
		last := s.runs * 2 / 3
		f.meta.MergeRun, f.meta.MergedTo = uint64(3*last+5), []byte(to)
		want := f.versions
		f.versions = before
		for _, entries := range f.runs[:last+1] {
			over(entries, f.tree, f.versions, &to)
		}
		f.write(t, db, f.runs)
		f.versions = want
		if s.packed {
			f.drop(t, db)
		}
	}
	require.NoError(t, db.Close())
	f.data, err = os.ReadFile(f.path)
	require.NoError(t, err)
	m, err := newestMeta(bytes.NewReader(f.data), int64(len(f.data)))
	require.NoError(t, err)
	f.data = f.data[:m.end*uint64(m.pageSize)]
	return f
}

func randomKey(rnd *rand.Rand, keys int) string {
	switch n := rnd.IntN(keys); {
	case n == 0:
		return ""
	case n%37 == 0:
		return fmt.Sprintf("key%06d%s", n, bytes.Repeat([]byte("k"), n%900))
	default:
		return fmt.Sprintf("key%06d", n)
	}
}

// randomRun returns updates of random keys, of each key one.
func randomRun(rnd *rand.Rand, s shape, stamp *ulog.Stamp, value func() string) map[string][]byte {
	entries := map[string][]byte{}
	for range s.entries {
		*stamp++
		var flag byte
		var version, v []byte
		if rnd.IntN(3) > 0 {
			flag, v = 1, []byte(value())
		}
		if s.lww && (flag == 1 || rnd.IntN(2) == 0) {
			flag |= 2
			version = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(nil, uint64(*stamp)), 2)
		}
		entries[randomKey(rnd, s.keys)] = slices.Concat([]byte{flag}, version, v)
	}
	return entries
}

// over lays a run over records and versions, up to a key. See writeVersion in package filestore.
func over(entries map[string][]byte, records map[string]string, versions map[string]filestore.LastUpdate, upTo *string) {
	for key, flagged := range entries {
		if upTo != nil && key > *upTo {
			continue
		}
		f, _ := filestore.DecodeFlagged(flagged)
		if f.Live {
			records[key] = string(f.Value)
		} else {
			delete(records, key)
		}
		if old, ok := versions[key]; f.Noted {
			versions[key] = f.Last
		} else if ok && !f.Live {
			versions[key] = filestore.LastUpdate{Version: old.Version, Removed: true}
		}
	}
}

// write replaces tree, versions and description.
func (f *made) write(t testing.TB, db *bolt.DB, runs []map[string][]byte) {
	f.meta.Count, f.meta.Bytes, f.meta.Sum, f.meta.Removals = int64(len(f.tree)), 0, 0, 0
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		for _, name := range []string{filestore.DataBucket, run.PackedBucket, filestore.VersionBucket} {
			if tx.Bucket([]byte(name)) != nil {
				require.NoError(t, tx.DeleteBucket([]byte(name)))
			}
		}
		b, err := tx.CreateBucket([]byte(filestore.DataBucket))
		require.NoError(t, err)
		most := 0
		if f.packed {
			most = run.PackedMost(os.Getpagesize())
		}
		f.pack(t, tx, most)
		for key, value := range f.tree {
			if len(key)+len(value) > most {
				require.NoError(t, b.Put([]byte("\x01"+key), []byte(value)))
			}
			f.meta.Bytes += int64(len(key) + len(value))
			f.meta.Sum += filestore.RecordSum([]byte(key), []byte(value))
		}
		if f.meta.LWW {
			b, err = tx.CreateBucket([]byte(filestore.VersionBucket))
			require.NoError(t, err)
			for key, e := range f.versions {
				require.NoError(t, b.Put([]byte("\x02"+key), filestore.AppendEntry(nil, e)))
				if e.Removed {
					f.meta.Removals++
				}
			}
		}
		return describe(tx, f.meta, len(runs) > 0)
	}))
}

// pack writes the small records into blocks, in several walks.
func (f *made) pack(t testing.TB, tx *bolt.Tx, most int) {
	keys := slices.Sorted(maps.Keys(f.tree))
	for walk := 0; walk < 3 && most > 0; walk++ {
		var e run.Editor
		require.NoError(t, e.Begin(tx))
		for i := walk; i < len(keys); i += 3 {
			if value := f.tree[keys[i]]; len(keys[i])+len(value) <= most {
				_, _, err := e.Set([]byte(keys[i]), []byte(value))
				require.NoError(t, err)
			}
		}
		require.NoError(t, e.End())
	}
}

// drop drops what a merge has passed of every other run.
func (f *made) drop(t testing.TB, db *bolt.DB) {
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		runs, err := run.Load(tx)
		require.NoError(t, err)
		for i, r := range runs {
			if r.Number() <= f.meta.MergeRun && i%2 == 1 {
				_, err := run.DropUpTo(tx, r, r.Info, f.meta.MergedTo, func(key, flagged []byte) (bool, int) {
					d, _ := filestore.DecodeFlagged(flagged)
					return d.Live, len(key) + len(d.Value)
				})
				require.NoError(t, err)
			}
		}
		return nil
	}))
}

// describe writes a description, of format 2 with runs, of format 3 with packed records.
func describe(tx *bolt.Tx, m filestore.Meta, runs bool) error {
	text, err := filestore.EncodeMeta(m)
	if err != nil {
		return err
	}
	format := 1
	if runs {
		format = 2
	}
	if run.AnyPacked(tx) {
		format = 3
	}
	if format > 1 {
		end := bytes.LastIndex(text, []byte(`,"Check":"`))
		text = bytes.Replace(text[:end], []byte(`"Format":1`), fmt.Appendf(nil, `"Format":%d`, format), 1)
		sum := binary.BigEndian.AppendUint64(nil, xxhash.Sum64(text))
		text = append(hex.AppendEncode(append(text, `,"Check":"`...), sum), `"}`...)
	}
	b, err := tx.CreateBucketIfNotExists([]byte(filestore.MetaBucket))
	if err != nil {
		return err
	}
	return b.Put([]byte(filestore.MetaKey), text)
}

// writeRun writes a run in several transactions.
func (f *made) writeRun(t testing.TB, db *bolt.DB, number uint64, entries map[string][]byte, transactions int, unfinished bool) {
	keys := slices.Sorted(maps.Keys(entries))
	w := run.NewWriter(number, int64(len(keys)), 1<<20)
	per := len(keys)/transactions + 1
	for done := false; !done; {
		require.NoError(t, db.Update(func(tx *bolt.Tx) error {
			require.NoError(t, w.Begin(tx))
			for n := 0; n < per && len(keys) > 0 && !w.Full(); n++ {
				flagged := entries[keys[0]]
				d, _ := filestore.DecodeFlagged(flagged)
				require.NoError(t, w.Add([]byte(keys[0]), flagged, d.Live, len(keys[0])+len(d.Value)))
				keys = keys[1:]
			}
			if done = len(keys) == 0; !done || unfinished {
				require.NoError(t, describe(tx, f.meta, true))
				return w.End()
			}
			_, err := w.Finish(int64(len(f.tree)), f.meta.Bytes)
			f.meta.Checkpoints++
			require.NoError(t, describe(tx, f.meta, true))
			return err
		}))
	}
}

// shapes are files with runs of all kinds.
func shapes() map[string]shape {
	return map[string]shape{
		"inline":          {records: 20, keys: 60, runs: 2, entries: 3},
		"small":           {records: 100, keys: 300, runs: 3, entries: 40},
		"no tree":         {keys: 300, runs: 3, entries: 200},
		"large":           {records: 300, keys: 900, runs: 4, entries: 500, large: true},
		"unfinished":      {records: 300, keys: 900, runs: 4, entries: 300, unfinished: true},
		"unfinished only": {records: 300, keys: 900, entries: 300, unfinished: true},
		"merging":         {records: 500, keys: 1500, runs: 6, entries: 400, merging: true, large: true},
		"lww":             {records: 500, keys: 1500, runs: 6, entries: 400, lww: true, unfinished: true},
		"lww merging":     {records: 500, keys: 1500, runs: 6, entries: 600, lww: true, merging: true, unfinished: true},
		"persistent":      {records: 100, keys: 300, runs: 3, entries: 300, persistent: true},
		"packed":          {records: 800, keys: 2000, runs: 3, entries: 300, large: true, packed: true},
		"packed only":     {records: 800, keys: 2000, packed: true},
		"packed merging":  {records: 800, keys: 2000, runs: 6, entries: 300, large: true, packed: true, merging: true, lww: true},
		"many":            {records: 2000, keys: 6000, runs: 64, entries: 200, lww: true},
	}
}
