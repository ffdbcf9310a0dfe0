package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/compat/ktproc"
	"gotycoon/internal/vfs"
	"gotycoon/snapshot"
)

// TestKillWhileTheLogIsKeptShort kills servers that remove files of the update log by themselves,
// and take snapshots of databases in memory, while clients write. At whatever step between snapshot,
// checkpoint and removal the kill comes, nothing acknowledged may be missing.
func TestKillWhileTheLogIsKeptShort(t *testing.T) {
	seed := number(t, seedEnv, int(time.Now().UnixNano()))
	t.Logf("%s=%d", seedEnv, seed)
	// The server looks for files beyond the limits once a second.
	v := &victim{work: 3 * time.Second, rng: rand.New(rand.NewPCG(uint64(seed), 11)), opts: ktproc.Options{
		Bin:  ktproc.BuildPlain(t, "ktserver"),
		Dir:  t.TempDir(),
		Args: []string{"-li", "-bgs", ".", "-bgsi", "1", "-ulog", "ul", "-sid", "7", "-ulim", "16k", "-ulog-keep-count", "2", "-log", "log"},
		DBs:  []string{":", "a.kct", "%", "b.kch"},
	}}
	v.hire("single0", 0, singles)
	v.hire("bulk", 1, bulks)
	v.hire("bulk2", 2, bulks)
	v.hire("clear", 3, clears)
	kills := max(number(t, longKills, 0)/4, snapshotKills+2)
	for deadline := time.Now().Add(time.Minute); ; kills = 1 {
		v.killRepeatedly(t, kills)
		text, err := os.ReadFile(filepath.Join(v.opts.Dir, "log"))
		require.NoError(t, err)
		if strings.Contains(string(text), "were removed, because they were beyond the limits") {
			return
		}
		require.True(t, time.Now().Before(deadline), "no server lived until it removed a file")
		v.work *= 2
	}
}

// TestRecoverFromTheSnapshotThatIsKept brings the snapshot of a database file back to a moment long
// after it, with a log of which everything was removed that nobody needs.
func TestRecoverFromTheSnapshotThatIsKept(t *testing.T) {
	o := ktproc.Options{Bin: ktproc.BuildPlain(t, "ktserver"), Dir: t.TempDir(), DBs: []string{"a.kct"},
		Args: []string{"-li", "-bgs", ".", "-bgsi", "0", "-ulog", "ul", "-sid", "7", "-ulim", "4k", "-ulog-keep-count", "1", "-log", "log"}}
	store := func(server *ktproc.Server, from, to int) {
		t.Helper()
		c, err := dial(server.Addr())
		require.NoError(t, err)
		defer c.Close()
		for i := from; i < to; i++ {
			_, err := c.Write(setBulk(0, []change{{key: fmt.Sprintf("key%05d", i), value: strings.Repeat("v", 100)}}))
			require.NoError(t, err)
			require.NoError(t, c.readReply(frame.SetBulk))
		}
	}
	server := ktproc.Start(t, o)
	store(server, 0, 1000)
	server.Stop(t)
	files, err := snapshot.List(vfs.OS{}, o.Dir)
	require.NoError(t, err)
	require.Len(t, files, 1)

	o.Args[4] = "1000" // no other snapshot is taken
	server = ktproc.Start(t, o)
	oldest := func() string {
		names, err := filepath.Glob(filepath.Join(o.Dir, "ul", "*.ulog"))
		require.NoError(t, err)
		require.NotEmpty(t, names)
		return names[0]
	}
	store(server, 1000, 2000)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(o.Dir, "log"))
		return err == nil && strings.Contains(string(text), "are kept, because they are needed for the snapshots of a.kct")
	}, 30*time.Second, 10*time.Millisecond)
	require.NotContains(t, oldest(), "0000000001.ulog", "what the snapshot has was removed")
	until := time.Now()
	time.Sleep(5 * time.Millisecond) //lint:sleep stamps count milliseconds
	store(server, 2000, 2500)
	server.Kill()

	r := &offline{bin: ktproc.BuildPlain(t, "kttimedmgr"), dir: o.Dir}
	r.must(t, "load", r.file("copy"), files[0].Path)
	r.must(t, "recover", "-ts", fmt.Sprint(files[0].Header.Stamp), "-until", until.UTC().Format(time.RFC3339Nano), r.file("copy"), filepath.Join(o.Dir, "ul"))
	lines := strings.Split(strings.TrimSpace(r.list(t, r.file("copy"))), "\n")
	require.Len(t, lines, 2000)
	require.Contains(t, lines[1999], "key01999")
}
