package timed_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore"
	"gotycoon/db/filestore/run"
	"gotycoon/db/rebuild"
)

// addRuns puts runs into a file that nobody has open: of every third key a newer value, of others a
// tombstone. It changes want in the same way.
func addRuns(t *testing.T, path string, want map[string]string) {
	t.Helper()
	m := description(t, path)
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true})
	require.NoError(t, err)
	defer db.Close()
	for number := range uint64(3) {
		keys := slices.Sorted(maps.Keys(want))
		w := run.NewWriter(100+number, int64(len(keys)), 1<<20)
		require.NoError(t, db.Update(func(tx *bolt.Tx) error {
			require.NoError(t, w.Begin(tx))
			for i, key := range keys {
				switch uint64(i) % 5 {
				case number:
					want[key] = fmt.Sprintf("run %d", number)
					flagged := append([]byte{1, 255, 255, 255, 255, 255}, want[key]...)
					require.NoError(t, w.Add([]byte(key), flagged, true, len(key)+len(flagged)-1))
				case number + 1:
					delete(want, key)
					require.NoError(t, w.Add([]byte(key), []byte{0}, false, 0))
				}
			}
			_, err := w.Finish(1, 1)
			require.NoError(t, err)
			text, err := filestore.EncodeMeta(m)
			require.NoError(t, err)
			text = bytes.Replace(text[:bytes.LastIndex(text, []byte(`,"Check":"`))], []byte(`"Format":1`), []byte(`"Format":2`), 1)
			sum := binary.BigEndian.AppendUint64(nil, xxhash.Sum64(text))
			text = append(hex.AppendEncode(append(text, `,"Check":"`...), sum), `"}`...)
			return tx.Bucket([]byte(filestore.MetaBucket)).Put([]byte(filestore.MetaKey), text)
		}))
	}
}

// Every command that reads a file without a server knows its runs, and what it writes has none.
func TestToolsKnowRuns(t *testing.T) {
	e := newEra(t, 300)
	compacted := filepath.Join(t.TempDir(), "compacted.kct")
	require.NoError(t, copyTo(e.path, compacted))
	succeed(t, "compact", compacted)
	want := contents(t, compacted)
	path := filepath.Join(t.TempDir(), "a.kct")
	require.NoError(t, copyTo(compacted, path))
	addRuns(t, path, want)
	out := succeed(t, "verify", path, e.dir)
	require.Contains(t, out, fmt.Sprintf("\nrecords: %d\n", len(want)))
	require.Contains(t, out, "\nruns: 3 (updates ")
	require.Contains(t, out, "\nchecksum: matches\n")
	require.Equal(t, 2, description(t, path).Format)
	require.Equal(t, want, contents(t, path))

	check := func(path string) {
		t.Helper()
		require.Equal(t, want, contents(t, path))
		f, err := rebuild.Open(path, false, true)
		require.NoError(t, err)
		require.Zero(t, f.Runs())
		require.Equal(t, 1, f.Meta().Format)
		require.NoError(t, f.Close())
		require.NotContains(t, succeed(t, "verify", path, e.dir), "runs:")
	}
	repaired := filepath.Join(t.TempDir(), "repaired.kct")
	r := command("", "repair", path, repaired)
	require.Zero(t, r.exit, r.stderr)
	require.Contains(t, r.stdout, fmt.Sprintf("records saved: %d\nrecords below the runs of the file, as it says: ", len(want)))
	check(repaired)
	recovered := filepath.Join(t.TempDir(), "recovered.kct")
	require.NoError(t, copyTo(path, recovered))
	require.Zero(t, command("", "recover", "--until", fmt.Sprint(description(t, path).Stamp+1), recovered, e.dir).exit)
	check(recovered)
	require.NoError(t, copyTo(path, compacted))
	succeed(t, "compact", compacted)
	check(compacted)
}

// When a block of a run is damaged, verify and repair say so, and compact leaves the file alone.
func TestDamagedBlockIsToldByTheTools(t *testing.T) {
	e := newEra(t, 300)
	succeed(t, "compact", e.path)
	want := contents(t, e.path)
	addRuns(t, e.path, want)
	data, err := os.ReadFile(e.path)
	require.NoError(t, err)
	at := bytes.LastIndex(data, []byte("run 2"))
	require.Positive(t, at)
	data[at+1] ^= 4
	require.NoError(t, os.WriteFile(e.path, data, 0o600))
	require.Contains(t, fail(t, "verify", e.path), "a block does not match its checksum")
	require.Contains(t, fail(t, "compact", e.path), "is damaged: run 102: page")
	r := command("", "repair", e.path, e.path+".saved.kct")
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "a block does not match its checksum; older than they should be, or missing, may be keys from ")
	require.Contains(t, r.stderr, "not everything could be saved")
}
