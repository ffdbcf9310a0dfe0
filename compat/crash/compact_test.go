package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
)

// TestKillWithinCompactions kills a server within a compaction that a client asked for, and within
// the one that the next server begins by itself. There is no third try without a client. All the
// time a client writes: each record that was acknowledged is there in the end, and the file is
// sound.
func TestKillWithinCompactions(t *testing.T) {
	bin := ktproc.BuildPlain(t, "ktserver")
	opts := ktproc.Options{Bin: bin, Dir: t.TempDir(), Args: []string{"-ls", "-checkpoint", "1m"}, DBs: []string{"a.kct"}}
	path := filepath.Join(opts.Dir, "a.kct")
	const base, bulk = 60_000, 1000

	server := ktproc.Start(t, opts)
	value := strings.Repeat("v", 300)
	for at := 0; at < base; at += bulk {
		var changes []change
		for i := range bulk {
			changes = append(changes, change{key: fmt.Sprintf("%08d", (at+i)*7919%base), value: value})
		}
		call(t, server, setBulk(0, changes))
	}
	for at := 0; at < base; at += 2 * bulk { // half of it
		var changes []change
		for i := range bulk {
			changes = append(changes, change{key: fmt.Sprintf("%08d", at+i), removed: true})
		}
		call(t, server, removeBulk(0, changes))
	}
	acked := 0
	kill := func(copied string) (within bool) {
		t.Helper()
		var writer sync.WaitGroup
		writer.Go(func() { acked = write(server, acked) })
		awaitCopy(t, server, copied)
		time.Sleep(time.Duration(rand.Int64N(int64(150 * time.Millisecond)))) //lint:sleep the moment of the kill is meant to be random
		server.Kill()
		writer.Wait()
		_, err := os.Stat(copied)
		return err == nil
	}
	askAndKill := func() {
		t.Helper()
		call(t, server, rpc("compact"))
		for n := 1; !kill(path + ".compact"); n++ {
			require.Less(t, n, 20, "it was done before each kill")
			server = ktproc.Start(t, opts)
			call(t, server, rpc("compact"))
		}
		server = ktproc.Start(t, opts)
	}
	askAndKill()
	for n := 1; !kill(path + ".compact2"); n++ { // begun again by itself
		require.Less(t, n, 20, "it was done before each kill")
		server = ktproc.Start(t, opts)
		askAndKill()
	}
	server = ktproc.Start(t, opts)
	askAndKill()
	require.Eventually(t, func() bool { return compacted(t, server) }, time.Minute, 50*time.Millisecond)
	records, count, err := dump(server.Addr(), 0)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(len(records)), count)
	for i := range acked {
		require.Equal(t, fmt.Sprint(i), records[fmt.Sprint("n", i)])
	}
	stored := 0
	for key, v := range records {
		if key[0] != 'n' {
			require.Equal(t, value, v)
			stored++
		}
	}
	require.Equal(t, base/2, stored)
	server.Stop(t)
	out, err := exec.Command(ktproc.BuildPlain(t, "kttimedmgr"), "verify", path).CombinedOutput()
	require.NoError(t, err, string(out))
	names, err := filepath.Glob(path + ".compact*")
	require.NoError(t, err)
	require.Empty(t, names)
	t.Logf("%d acknowledged updates", acked)
}

// call sends a request, whatever its protocol is, and returns the body of the answer.
func call(t *testing.T, server *ktproc.Server, request []byte) (body string) {
	t.Helper()
	c, err := dial(server.Addr())
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write(request)
	require.NoError(t, err)
	if request[0] == 'P' {
		body, err = c.readHTTP(http.StatusOK)
	} else {
		var reply [5]byte
		_, err = c.in.Read(reply[:])
	}
	require.NoError(t, err)
	return body
}

// write stores records one by one until the server dies, and returns how many it has acknowledged.
func write(server *ktproc.Server, from int) int {
	c, err := dial(server.Addr())
	if err != nil {
		return from
	}
	defer c.Close()
	for ; ; from++ {
		if _, err := c.Write(rpc("set", "key", fmt.Sprint("n", from), "value", fmt.Sprint(from))); err != nil {
			return from
		}
		if _, err := c.readHTTP(http.StatusOK); err != nil {
			return from
		}
	}
}

// awaitCopy waits until a compaction has its file, or is done: that can be over before anybody looks.
func awaitCopy(t *testing.T, server *ktproc.Server, path string) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for n := 1; ; n++ {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			return
		}
		if n%100 == 0 && compacted(t, server) {
			return
		}
		require.True(t, time.Now().Before(end), "%s does not come", path)
		time.Sleep(time.Millisecond) //lint:sleep nothing tells when a file of another process is there
	}
}

// compacted reports whether the latest compaction of this process is done.
func compacted(t *testing.T, server *ktproc.Server) bool {
	t.Helper()
	return strings.Contains(call(t, server, rpc("status")), "compaction\tdone")
}
