package compat

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
)

// session types lines at a server, as with telnet, and compares what comes.
type session struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func openSession(t *testing.T, addr string) *session {
	t.Helper()
	c, err := net.Dial("tcp4", addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	return &session{c, t, bufio.NewReader(c)}
}

func (s *session) types(lines string, want ...string) {
	s.t.Helper()
	_, err := s.Write([]byte(strings.ReplaceAll(lines, "\n", "\r\n")))
	require.NoError(s.t, err)
	for _, line := range want {
		got, err := s.r.ReadString('\n')
		require.NoError(s.t, err)
		require.Equal(s.t, line+"\r\n", got)
	}
}

// TestPublishedTelnetSession is the session of the original's tutorial.
func TestPublishedTelnetSession(t *testing.T) {
	t.Parallel()
	port := freeport.Take(t)
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	ktproc.Start(t, ktproc.Options{Bin: ktproc.BuildPlain(t, "ktserver"), Dir: t.TempDir(), BareDBs: true,
		Args: []string{"-th", "1", "-plsv", "/usr/local/libexec/ktplugservmemc.so", "-plex", fmt.Sprintf("port=%d", port)}})
	awaitListening(t, addr)
	s := openSession(t, addr)
	s.types("set japan 0 0 5\ntokyo\n", "STORED")
	s.types("get japan\n", "VALUE japan 0 5", "tokyo", "END")
	s.types("quit\n")
	_, err := s.r.ReadByte()
	require.Error(t, err)
}

// queueServer starts the tutorial's queue, in a directory that outlives it.
func queueServer(t *testing.T, bin, dir string, port int) *ktproc.Server {
	t.Helper()
	s := ktproc.Start(t, ktproc.Options{Bin: bin, Dir: dir, DBs: []string{"casket.kct#ktopts=p"}, Args: []string{"-th", "1", "-le",
		"-plsv", "/usr/local/libexec/ktplugservmemc.so", "-plex", fmt.Sprintf("port=%d#opts=fq#qtout=1", port)}})
	awaitListening(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	return s
}

// TestPublishedQueue is the tutorial's producer and worker as programs: with an ordinary client,
// while the server is killed.
func TestPublishedQueue(t *testing.T) {
	t.Parallel()
	bin, dir, port := ktproc.Build(t, "ktserver"), t.TempDir(), freeport.Take(t)
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	rounds, pause := 3, 300*time.Millisecond
	if os.Getenv("GOTYCOON_BIG") != "" {
		rounds, pause = 100, time.Second
	}
	q := &publishedQueue{addr: addr, stored: map[string]bool{}, done: map[string]int{}}
	s := queueServer(t, bin, dir, port)
	var running sync.WaitGroup
	for i := range 2 {
		running.Go(func() { q.produce(i) })
	}
	for i := range 4 {
		running.Go(func() { q.work(uint64(i)) })
	}
	for range rounds {
		time.Sleep(pause) //lint:sleep the work of a round; nothing is waited for
		s.Kill()
		s = queueServer(t, bin, dir, port)
	}
	q.enough.Store(true)
	require.Eventually(t, q.finished, time.Minute, 20*time.Millisecond, "acknowledged messages are lost: %v", q)
	q.stop.Store(true)
	running.Wait()
	t.Logf("%v", q)
	s.Stop(t)
	require.FileExists(t, filepath.Join(dir, "casket.kct"))
}

// publishedQueue is the state of the messages.
type publishedQueue struct {
	addr         string
	enough, stop atomic.Bool // no more messages; no more work

	mu     sync.Mutex
	stored map[string]bool // acknowledged
	done   map[string]int  // how often each has been worked on
}

// String tells what has happened.
func (q *publishedQueue) String() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	again := 0
	for _, n := range q.done {
		again += n - 1
	}
	return fmt.Sprintf("%d acknowledged, %d worked on, %d again", len(q.stored), len(q.done), again)
}

// finished reports whether every acknowledged message has been processed.
func (q *publishedQueue) finished() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for message := range q.stored {
		if q.done[message] == 0 {
			return false
		}
	}
	return true
}

func (q *publishedQueue) produce(id int) {
	c := memcache.New(q.addr)
	defer c.Close()
	for i := 0; !q.enough.Load(); i++ {
		message := fmt.Sprintf("%d-%d", id, i)
		if c.Set(&memcache.Item{Key: "foo", Value: []byte(message)}) != nil {
			time.Sleep(time.Millisecond) //lint:sleep the server is being started again
			continue
		}
		q.mu.Lock()
		q.stored[message] = true
		q.mu.Unlock()
	}
}

// work asks, works, deletes; now and then it dies with a message.
func (q *publishedQueue) work(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for !q.stop.Load() {
		c, err := net.Dial("tcp4", q.addr)
		if err != nil {
			time.Sleep(time.Millisecond) //lint:sleep the server is being started again
			continue
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		for !q.stop.Load() && r.IntN(50) > 0 && q.workOn(c) {
		}
		c.Close()
	}
}

// workOn works on one message. It returns false when the connection has ended.
func (q *publishedQueue) workOn(c net.Conn) bool {
	in := bufio.NewReader(c)
	fmt.Fprint(c, "get foo\r\n")
	head, err := in.ReadString('\n')
	if err != nil {
		return false
	}
	if !strings.HasPrefix(head, "VALUE") {
		return true
	}
	message, err := in.ReadString('\n')
	if err != nil {
		return false
	}
	_, _ = in.ReadString('\n')
	q.mu.Lock()
	q.done[strings.TrimSpace(message)]++
	q.mu.Unlock()
	fmt.Fprint(c, "delete foo\r\n")
	reply, _ := in.ReadString('\n')
	return reply == "DELETED\r\n"
}

// A message that was fetched when the server was killed comes again; a deleted one does not.
func TestKilledServerKeepsFetchedMessages(t *testing.T) {
	t.Parallel()
	bin, dir, port := ktproc.BuildPlain(t, "ktserver"), t.TempDir(), freeport.Take(t)
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	first := queueServer(t, bin, dir, port)
	s := openSession(t, addr)
	for _, message := range []string{"a", "b", "c"} {
		s.types("set job 3 0 1\n"+message+"\n", "STORED")
	}
	s.types("get job\n", "VALUE job 3 1", "a", "END")
	s.types("get job\n", "VALUE job 3 1", "b", "END")
	s.types("delete job\n", "DELETED")
	first.Kill()

	second := queueServer(t, bin, dir, port)
	again := openSession(t, addr)
	again.types("get job\n", "VALUE job 3 1", "b", "END")
	again.types("get job\n", "VALUE job 3 1", "c", "END")
	again.types("get job\n", "END")
	again.types("delete job\ndelete job\ndelete job\n", "DELETED", "DELETED", "NOT_FOUND")
	second.Stop(t)
}
