package crash

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// followKills are the kills of slaves in the default test run.
const followKills = 4

// TestKilledSlavesApplyEachUpdateOnce kills slaves, and now and then their master, while a client
// writes. In the end the slave's log must have each update of the master's log once, in the same
// order, and a slave with private logs must have each line of a text database once.
func TestKilledSlavesApplyEachUpdateOnce(t *testing.T) {
	bin := ktproc.BuildPlain(t, "ktserver")
	seed := number(t, seedEnv, int(time.Now().UnixNano()))
	t.Logf("%s=%d", seedEnv, seed)
	rng := rand.New(rand.NewPCG(uint64(seed), 9))
	port := freeport.Take(t)
	master := ktproc.Options{Bin: bin, Dir: t.TempDir(), Args: []string{"-ls", "-ulog", "ul", "-sid", "1", "-ulim", "256k"}, DBs: []string{"a.kct", "b.kct"}}
	follow := []string{"-ls", "-checkpoint", "64k", "-mhost", "127.0.0.1", "-mport", strconv.Itoa(port), "-rts", "rts"}
	slaves := []ktproc.Options{
		{Bin: bin, Dir: t.TempDir(), Args: append([]string{"-ulog", "ul", "-ulim", "100k", "-sid", "2"}, follow...), DBs: []string{"a.kct", "b.kch"}},
		{Bin: bin, Dir: t.TempDir(), Args: append([]string{"-sid", "3"}, follow...), DBs: []string{"a.kct", "lines.kcx"}},
	}
	server := launched(t, master, port)
	var stop atomic.Bool
	var writing sync.WaitGroup
	var written [2]int
	writing.Go(func() { written = writeUntil(&stop, server.Addr()) })
	running := []*ktproc.Server{ktproc.Start(t, slaves[0]), ktproc.Start(t, slaves[1])}
	for range max(number(t, longKills, 0), followKills) {
		time.Sleep(time.Duration(rng.Int64N(int64(500 * time.Millisecond)))) //lint:sleep the moment of the kill is meant to be random
		i := rng.IntN(len(slaves))
		running[i].Kill()
		if rng.IntN(3) == 0 {
			server.Kill()
			server = launched(t, master, port)
		}
		running[i] = ktproc.Start(t, slaves[i])
	}
	stop.Store(true)
	writing.Wait()
	want := logOf(t, filepath.Join(master.Dir, "ul"))
	require.GreaterOrEqual(t, len(want), written[0]+written[1])
	require.Eventually(t, func() bool { return len(logOf(t, filepath.Join(slaves[0].Dir, "ul"))) >= len(want) }, time.Minute, 20*time.Millisecond,
		running[0].Output())
	require.Equal(t, digest(want), digest(logOf(t, filepath.Join(slaves[0].Dir, "ul"))))
	lines := 0
	for _, u := range want {
		if u[3] == 1 {
			lines++
		}
	}
	require.Eventually(t, func() bool {
		records, _, err := dump(running[1].Addr(), 1)
		require.NoError(t, err)
		require.LessOrEqual(t, len(records), lines, "lines that are there twice")
		return len(records) == lines
	}, time.Minute, 20*time.Millisecond)
	running[0].Stop(t)
	running[1].Stop(t)
	server.Stop(t)
	t.Logf("%d updates", len(want))
}

// launched starts a server on the port that it had before.
func launched(t *testing.T, o ktproc.Options, port int) *ktproc.Server {
	t.Helper()
	s := ktproc.Launch(t, o, port)
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp4", s.Addr())
		if err == nil {
			c.Close()
		}
		return err == nil
	}, 30*time.Second, 5*time.Millisecond, "the server does not listen")
	return s
}

// writeUntil writes to both databases, now and then in bulk, also while the server is away. It
// returns the number of acknowledged updates.
func writeUntil(stop *atomic.Bool, addr string) (acked [2]int) {
	var c *client
	for i := 0; !stop.Load(); i++ {
		if c == nil {
			var err error
			if c, err = dial(addr); err != nil {
				time.Sleep(10 * time.Millisecond) //lint:sleep until the server is there again
				continue
			}
		}
		db := uint16(i % 3 / 2)
		var changes []change
		for k := range 1 + i%20 {
			changes = append(changes, change{key: fmt.Sprintf("key %d", (i+k)%500), value: fmt.Sprintf("value %d %d", i, k)})
		}
		_, err := c.Write(setBulk(db, changes))
		if err == nil {
			err = c.readReply(0xb8)
		}
		if err != nil {
			c.Close()
			c = nil
			continue
		}
		acked[db] += len(changes)
	}
	if c != nil {
		c.Close()
	}
	return acked
}

// logOf returns the messages in a log that may be being written.
func logOf(t *testing.T, dir string) (messages []string) {
	t.Helper()
	r, err := ulog.OpenReader(vfs.OS{}, dir, 0, ulog.ReaderOptions{})
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	defer r.Close()
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return messages
		}
		require.NoError(t, err)
		messages = append(messages, string(e.Message))
	}
}

// digest is a list short enough to be compared by a person.
func digest(messages []string) (lines []string) {
	for _, m := range messages {
		lines = append(lines, fmt.Sprintf("%q", m[2:]))
	}
	return lines
}
