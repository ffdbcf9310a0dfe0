package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/db/record"
	"gotycoon/internal/freeport"
	"gotycoon/internal/vfs"
	"gotycoon/snapshot"
)

// snapshotKills are the kills of the default test run, in each mode.
const snapshotKills = 4

// TestKillWithSnapshots kills servers that have databases in memory, snapshots and an update log.
// All records must come back.
func TestKillWithSnapshots(t *testing.T) {
	bin := ktproc.BuildPlain(t, "ktserver")
	seed := number(t, seedEnv, int(time.Now().UnixNano()))
	for i, compressor := range []string{"none", "zlib"} {
		t.Run(compressor, func(t *testing.T) {
			t.Parallel()
			t.Logf("%s=%d", seedEnv, seed)
			v := &victim{work: shortWork, rng: rand.New(rand.NewPCG(uint64(seed), uint64(i))), opts: ktproc.Options{
				Bin:  bin,
				Dir:  t.TempDir(),
				Args: []string{"-ls", "-bgs", ".", "-bgsi", "0.15", "-bgsc", compressor, "-ulog", "ul", "-sid", "7", "-ulim", "1m"},
				DBs:  []string{":", "%", "*"},
			}}
			v.logDir = filepath.Join(v.opts.Dir, "ul")
			v.hire("single0", 0, singles)
			v.hire("bulk", 0, bulks)
			v.hire("bulk2", 2, bulks)
			v.hire("atomic0", 0, atomics)
			v.hire("clear", 1, clears)
			v.killRepeatedly(t, max(number(t, longKills, 0)/2, snapshotKills))
		})
	}
}

// TestKillWhileLogFilesAreRemoved kills servers while clients write to databases in memory and on
// disk, and files of the update log are removed all the time. At whatever step between snapshot,
// checkpoint and removal the kill comes, nothing acknowledged may be missing.
func TestKillWhileLogFilesAreRemoved(t *testing.T) {
	seed := number(t, seedEnv, int(time.Now().UnixNano()))
	t.Logf("%s=%d", seedEnv, seed)
	v := &victim{work: shortWork, rng: rand.New(rand.NewPCG(uint64(seed), 7)), opts: ktproc.Options{
		Bin:  ktproc.BuildPlain(t, "ktserver"),
		Dir:  t.TempDir(),
		Args: []string{"-ls", "-bgs", ".", "-bgsi", "100", "-ulog", "ul", "-sid", "7", "-ulim", "16k"},
		DBs:  []string{":", "a.kct", "%", "b.kch"},
	}}
	v.hire("remover", 0, logRemovals)
	v.hire("single0", 0, singles)
	v.hire("bulk", 1, bulks)
	v.hire("bulk2", 2, bulks)
	v.hire("clear", 3, clears)
	v.killRepeatedly(t, max(number(t, longKills, 0)/2, snapshotKills))
}

// TestKillDuringRestore kills servers while they make a database file from a snapshot. Afterwards
// there must be no file, or a complete file.
func TestKillDuringRestore(t *testing.T) {
	const records = 60_000
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	o := ktproc.Options{Bin: ktproc.BuildPlain(t, "ktserver"), Dir: dir, Args: []string{"-ls", "-bgs", ".", "-bgsi", "0"}, DBs: []string{"a.kct"}}
	writeSnapshot(t, dir, records)
	file := filepath.Join(dir, "a.kct")
	limit := 20 * time.Millisecond
	for !exists(file) {
		server := ktproc.Launch(t, o, freeport.Take(t))
		time.Sleep(time.Duration(rng.Int64N(int64(limit)))) //lint:sleep the moment of the kill is meant to be random
		server.Kill()
		limit += limit / 4
	}
	server := ktproc.Start(t, o)
	require.NotContains(t, server.Output(), "applying a snapshot", "the file was there")
	found, count, err := dump(server.Addr(), 0)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(records), count)
	require.Len(t, found, records)
	server.Stop(t)
}

// writeSnapshot puts a snapshot of database 0 into a directory.
func writeSnapshot(t *testing.T, dir string, records int) {
	t.Helper()
	var b strings.Builder
	w, err := snapshot.NewWriter(&b, snapshot.Header{Stamp: 1, Count: int64(records)})
	require.NoError(t, err)
	value := []byte("\xff\xff\xff\xff\xff" + strings.Repeat("v", 50))
	for i := range records {
		require.NoError(t, w.Add(fmt.Appendf(nil, "key%d", i), value))
	}
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, snapshot.Name(0)), []byte(b.String()), 0o600))
}

// TestRestartKeepsTheSchedule restarts a server by a signal: snapshots go on being taken.
func TestRestartKeepsTheSchedule(t *testing.T) {
	dir := t.TempDir()
	o := ktproc.Options{Bin: ktproc.BuildPlain(t, "ktserver"), Dir: dir, Args: []string{"-bgs", ".", "-bgsi", "0.1", "-log", "log"}, DBs: []string{":"}}
	server := ktproc.Start(t, o)
	taken := func(records int64) func() bool {
		return func() bool {
			files, err := snapshot.List(vfs.OS{}, dir)
			return err == nil && len(files) == 1 && files[0].Header.Count == records
		}
	}
	for i := range int64(2) {
		c, err := dial(server.Addr())
		require.NoError(t, err)
		_, err = c.Write(setBulk(0, []change{{key: fmt.Sprint(i), value: "v"}}))
		require.NoError(t, err)
		require.NoError(t, c.readReply(0xb8))
		c.Close()
		require.Eventually(t, taken(i+1), 10*time.Second, 10*time.Millisecond)
		if i == 0 {
			server.Signal(t, syscall.SIGUSR1)
			require.Eventually(t, func() bool {
				text, err := os.ReadFile(filepath.Join(dir, "log"))
				return err == nil && strings.Count(string(text), "listening server socket started") == 2
			}, 10*time.Second, 10*time.Millisecond)
		}
	}
	server.Stop(t)
}

// TestSnapshotsHoldWhatClientsStored reads a server's snapshots: they must have every record with
// its expiration time.
func TestSnapshotsHoldWhatClientsStored(t *testing.T) {
	dir := t.TempDir()
	o := ktproc.Options{Bin: ktproc.BuildPlain(t, "ktserver"), Dir: dir, Args: []string{"-bgs", "."}, DBs: []string{"%"}}
	server := ktproc.Start(t, o)
	c, err := dial(server.Addr())
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write(setBulk(0, []change{{key: "a", value: "1"}, {key: "b", value: "2"}}))
	require.NoError(t, err)
	require.NoError(t, c.readReply(0xb8))
	server.Stop(t)
	r, err := snapshot.Open(vfs.OS{}, filepath.Join(dir, snapshot.Name(0)))
	require.NoError(t, err)
	defer r.Close()
	for _, want := range [][2]string{{"a", "1"}, {"b", "2"}} {
		key, value, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, want, [2]string{string(key), string(value[5:])})
		require.Equal(t, strings.Repeat("\xff", 5), string(value[:5]), "%d", record.Never)
	}
}
