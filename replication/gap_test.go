package replication_test

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/replication"
	"gotycoon/ulog"
)

// contents returns the live records of a database.
func (n *node) contents(index int) map[string]string {
	n.t.Helper()
	got := map[string]string{}
	require.NoError(n.t, n.catalog.Numbered(index).Walk(nil, nil, func(key, value []byte, _ int64) bool {
		got[string(key)] = string(value)
		return true
	}))
	return got
}

// fillAndForget writes so much that the log has several files, and removes all but the last.
func (n *node) fillAndForget(records int) {
	n.t.Helper()
	for i := range records {
		n.set(i%n.catalog.Len(), fmt.Sprintf("key %05d", i), strings.Repeat("v", i%50))
	}
	n.forget()
}

// forget removes all files of the log that the databases can do without, as if the disk were full:
// followers count for nothing.
func (n *node) forget() {
	n.t.Helper()
	require.NoError(n.t, n.catalog.RemoveLogFiles(1<<62))
	require.NoError(n.t, n.catalog.Log().ReclaimFiles(1<<62))
}

func requireEqualContents(t *testing.T, a, b *node) {
	t.Helper()
	for i := range a.catalog.Len() {
		want, got := a.contents(i), b.contents(i)
		require.Equal(t, len(want), len(got), "records of database %d", i)
		require.True(t, maps.Equal(want, got), "database %d", i)
	}
}

func TestGapIsFilledWithACopy(t *testing.T) {
	for _, kinds := range [][2]string{{":", "%"}, {"a.kct", "b.kch"}, {"*", "b.kct#rcomp=dec"}, {"a.kct", ":"}} {
		t.Run(strings.ReplaceAll(kinds[0]+" and "+kinds[1], "#", " "), func(t *testing.T) {
			place := func(kind string) string {
				if strings.Contains(kind, ".") {
					return filepath.Join(t.TempDir(), kind)
				}
				return kind
			}
			a, b := newNode(t, 1, place(kinds[0]), place(kinds[1])), newNode(t, 2, place(kinds[0]), place(kinds[1]))
			f, end := b.follow(master(a.port))
			for i := range 100 { // these are changed, or removed, or stay
				a.set(i%2, fmt.Sprint("old ", i), "1")
			}
			caughtUp(t, f, a)
			eventually(t, "what is old", func() bool { return b.get(1, "old 99") != "" })
			end()
			for i := range 100 {
				d := a.catalog.DB(i % 2)
				switch key := fmt.Append(nil, "old ", i); i % 3 {
				case 0:
					require.NoError(t, d.Remove(nil, key))
				case 1:
					require.NoError(t, d.Set(nil, key, []byte("2"), 100))
				}
			}
			a.fillAndForget(3000)
			f, _ = b.follow(master(a.port))
			eventually(t, "the copy", func() bool { return f.Status().State == replication.Streaming && b.get(1, "key 02999") != "" })
			a.set(0, "live", "1")
			eventually(t, "an update after the copy", func() bool { return b.get(0, "live") == "1" })
			requireEqualContents(t, a, b)
			require.Contains(t, strings.Join(b.log.lines("ERROR"), "\n"), "the master has not kept the updates")
			require.Contains(t, strings.Join(a.log.lines("ERROR"), "\n"), "it will fetch a copy")

			// A follower of the follower gets the copy, too.
			c := newNode(t, 3, place(kinds[0]), place(kinds[1]))
			c.follow(master(b.port))
			eventually(t, "the copy", func() bool { return c.get(0, "live") == "1" })
			requireEqualContents(t, a, c)
		})
	}
}

// cutter is a way to a master that breaks after some bytes from it.
type cutter struct {
	port   int
	limit  func() int64
	socket net.Listener
	wg     sync.WaitGroup
}

func newCutter(t *testing.T, to int, limit func() int64) *cutter {
	t.Helper()
	socket, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cutter{port: socket.Addr().(*net.TCPAddr).Port, limit: limit, socket: socket}
	c.wg.Go(func() {
		for {
			in, err := socket.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", to))
			if err != nil {
				in.Close()
				continue
			}
			n := limit()
			c.wg.Go(func() { _, _ = io.CopyN(in, out, n); in.Close(); out.Close() })
			c.wg.Go(func() { _, _ = io.Copy(out, in); in.Close(); out.Close() })
		}
	})
	t.Cleanup(func() { socket.Close(); c.wg.Wait() })
	return c
}

// gate is a way to a master that lets nothing from it pass while shut is locked.
type gate struct {
	port int
	shut sync.RWMutex
}

func newGate(t *testing.T, to int) *gate {
	t.Helper()
	g := &gate{}
	socket, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	g.port = socket.Addr().(*net.TCPAddr).Port
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := socket.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", to))
			if err != nil {
				in.Close()
				continue
			}
			_ = out.(*net.TCPConn).SetReadBuffer(64 << 10) // a stream stands still soon
			wg.Go(func() { g.copy(in, out); in.Close(); out.Close() })
			wg.Go(func() { _, _ = io.Copy(out, in); in.Close(); out.Close() })
		}
	})
	t.Cleanup(func() { socket.Close(); wg.Wait() })
	return g
}

func (g *gate) copy(dst io.Writer, src io.Reader) {
	b := make([]byte, 64<<10)
	for {
		n, err := src.Read(b)
		g.shut.RLock()
		_, werr := dst.Write(b[:n])
		g.shut.RUnlock()
		if err != nil || werr != nil {
			return
		}
	}
}

// Copies that are interrupted all the time come to an end, because those of ordered databases go on
// where they were. The master goes on changing meanwhile.
func TestInterruptedCopies(t *testing.T) {
	a := newNode(t, 1, filepath.Join(t.TempDir(), "a.kct"), "%")
	b := newNode(t, 2, filepath.Join(t.TempDir(), "a.kct"), "%")
	for i := range 500 {
		b.set(0, fmt.Sprintf("stranger %05d", i), "x")
	}
	for i := range 8_000 {
		a.set(i%2, fmt.Sprintf("key %05d", i), strings.Repeat("v", 40))
	}
	a.forget()
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	var mu sync.Mutex
	way := newCutter(t, a.port, func() int64 {
		mu.Lock()
		defer mu.Unlock()
		return 40_000 + rng.Int64N(150_000)
	})
	f, _ := b.follow(master(way.port))
	n := 0
	require.Eventually(t, func() bool {
		n++
		a.set(n%2, fmt.Sprintf("key %05d", n%8_000), "changed")
		if n%5 == 0 {
			require.NoError(t, a.catalog.DB(0).Remove(nil, fmt.Appendf(nil, "key %05d", n%8_000/2*2)))
		}
		return f.Status().State == replication.Streaming
	}, 2*patience, 5*time.Millisecond)
	require.Contains(t, strings.Join(b.log.lines("INFO"), "\n"), "the copy goes on behind the key")
	a.set(1, "end", "x")
	eventually(t, "the end", func() bool { return b.get(1, "end") == "x" })
	requireEqualContents(t, a, b)
}

// A server whose database in memory has come up empty gets a copy, the other databases go on where
// they were.
func TestEmptyMemoryIsFilledWithACopy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.kct")
	a, b := newNode(t, 1, ":", ":"), newNode(t, 2, file, ":")
	f, end := b.follow(master(a.port))
	for i := range 100 {
		a.set(i%2, fmt.Sprint(i), "x")
	}
	caughtUp(t, f, a)
	end()
	b.shut()
	require.NoError(t, b.catalog.Close())
	b.start()
	require.Empty(t, b.contents(1))
	require.Len(t, b.contents(0), 50)
	logged := len(b.logged())
	f, _ = b.follow(master(a.port))
	eventually(t, "the copy", func() bool { return len(b.contents(1)) == 50 })
	a.set(0, "live", "1")
	eventually(t, "an update", func() bool { return b.get(0, "live") == "1" })
	caughtUp(t, f, a) // a record can be read before the log has it
	requireEqualContents(t, a, b)
	require.Equal(t, logged+1+50+1, len(b.logged()), "a clear, the copy of one database, the update")
}

// Where a server is survives with the data, whatever becomes of the RTS file after a crash; but who
// edits it gets what he says.
func TestTheDataKnowWhereTheyAre(t *testing.T) {
	a := newNode(t, 1, ":")
	b := newNode(t, 2, filepath.Join(t.TempDir(), "a.kct"))
	m := master(a.port)
	f, end := b.follow(m)
	a.set(0, "a", "1")
	last := a.catalog.Log().Last()
	eventually(t, "the RTS file", func() bool { return b.savedRTS() >= last })
	end()
	before := b.savedRTS()
	restart := func() {
		end()
		b.shut()
		require.NoError(t, b.catalog.Close())
		b.start()
		f, end = b.follow(m)
	}
	a.set(0, "b", "1")
	restart()
	eventually(t, "the update", func() bool { return b.get(0, "b") == "1" })
	caughtUp(t, f, a)
	end()
	require.Len(t, b.logged(), 2)

	require.Greater(t, b.savedRTS(), before)
	writeRTS(t, b, 1) // before everything
	restart()
	eventually(t, "all again", func() bool { return len(b.logged()) == 4 })
	require.Contains(t, strings.Join(b.log.lines("INFO"), "\n"), "the RTS file has been changed: replication goes on from ts=1")
	caughtUp(t, f, a)
	restart()
	a.set(0, "c", "1")
	eventually(t, "what is new", func() bool { return b.get(0, "c") == "1" })
	caughtUp(t, f, a)
	require.Len(t, b.logged(), 5, "only what is new")
}

func writeRTS(t *testing.T, n *node, at ulog.Stamp) {
	t.Helper()
	require.NoError(t, writeFile(n.rts(), fmt.Sprintf("%020d\n", at)))
}

func TestGuardedDatabasesTakeUpdatesOfTheMasterOnly(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2, filepath.Join(t.TempDir(), "a.kct"), "%")
	require.NoError(t, b.catalog.SetGuarded(true))
	b.follow(master(a.port))
	a.set(0, "k", "1")
	require.NoError(t, a.catalog.DB(1).Clear(nil))
	a.set(1, "k", "1")
	eventually(t, "the updates", func() bool { return b.get(0, "k") == "1" && b.get(1, "k") == "1" })
	d := b.catalog.DB(0)
	require.Equal(t, dberr.ErrReadOnly, d.Set(nil, []byte("k"), []byte("2"), record.Never))
	require.Equal(t, dberr.ErrReadOnly, d.Clear(nil))
	_, err := d.SetBulk(nil, []db.Record{{Key: []byte("k")}}, true)
	require.Equal(t, dberr.ErrReadOnly, err)
	_, err = d.Begin(nil, false)
	require.Equal(t, dberr.ErrReadOnly, err)
	require.NoError(t, b.catalog.SetGuarded(false))
	b.set(0, "k", "2")
}
