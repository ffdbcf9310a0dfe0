package sequence

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/db"
)

const (
	childDir   = "COCONUT_TEST_DIR"   // makes the test binary a server of that directory's database
	childClock = "COCONUT_TEST_CLOCK" // by how many seconds its clock is wrong
	crashLimit = 100_000              // units of the quota per kill
)

// TestMain is a server in the processes that the crash tests start.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		fmt.Fprintln(os.Stderr, serveChild(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// serveChild serves sequences and a quota until the process is killed. It tells their addresses on standard output.
func serveChild(dir string) error {
	wrong, _ := strconv.ParseInt(os.Getenv(childClock), 10, 64)
	catalog, err := db.Open([]string{filepath.Join(dir, "services.kct")}, db.Options{})
	if err != nil {
		return err
	}
	sequences, err := NewSequenceServer(SequenceOptions{DB: catalog.DB(0), ServerNo: 1, Now: func() time.Time {
		return time.Now().Add(time.Duration(wrong) * time.Second)
	}})
	if err != nil {
		return err
	}
	quotas, err := NewQuotaServer(QuotaOptions{DB: catalog.DB(0), Limit: crashLimit, Export: filepath.Join(dir, "journals")})
	if err != nil {
		return err
	}
	for _, s := range []interface{ Start(net.Listener) }{sequences, quotas} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.Start(l)
		fmt.Println(l.Addr())
	}
	select {}
}

// child is such a process.
type child struct {
	cmd             *exec.Cmd
	sequence, quota string // addresses
}

func startChild(t *testing.T, dir string, wrong int) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childDir+"="+dir, childClock+"="+strconv.Itoa(wrong))
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(c.kill)
	r := bufio.NewReader(out)
	for _, addr := range []*string{&c.sequence, &c.quota} {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		*addr = strings.TrimSpace(line)
	}
	return c
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may be dead already
	_ = c.cmd.Wait()
}

// kills returns how often to kill, and by how much more there is to do than in a quick run.
func kills(t *testing.T, quick, full int) (n, scale int) {
	if wanted, err := strconv.Atoi(os.Getenv("GOTYCOON_CRASH")); err == nil && wanted > 0 {
		return full, 27
	}
	return quick, 1
}

// call makes one call on a connection of its own if need be. ok is false when the server is gone.
type caller struct {
	socket net.Conn
	reader *bufio.Reader
}

func (c *caller) call(addr, path string) (body string, ok bool) {
	if c.socket == nil {
		socket, err := net.Dial("tcp", addr)
		if err != nil {
			return "", false
		}
		c.socket, c.reader = socket, bufio.NewReader(socket)
	}
	body, err := c.try(path)
	if err != nil {
		c.socket.Close()
		c.socket = nil
	}
	return body, err == nil
}

func (c *caller) try(path string) (string, error) {
	if _, err := io.WriteString(c.socket, "GET "+path+" HTTP/1.1\r\n\r\n"); err != nil {
		return "", err
	}
	var size int
	for line := "x"; line != ""; {
		text, err := c.reader.ReadString('\n')
		if err != nil {
			return "", err
		}
		line = strings.TrimSpace(text)
		if value, ok := strings.CutPrefix(line, "Content-length: "); ok {
			if size, err = strconv.Atoi(value); err != nil {
				return "", err
			}
		}
	}
	text := make([]byte, size)
	_, err := io.ReadFull(c.reader, text)
	return string(text), err
}

// fetchUntil fetches numbers until the server is gone or enough are taken. Numbers of one worker grow, across all the servers.
func fetchUntil(addr string, last *moment, left *atomic.Int64, rnd *rand.Rand) (all []moment, err error) {
	var c caller
	defer c.close()
	for left.Load() > 0 {
		count := 1 + rnd.IntN(200)
		body, ok := c.call(addr, "/fetch?count="+strconv.Itoa(count))
		if !ok {
			return all, nil
		}
		for text := range strings.FieldsSeq(body) {
			m, err := parseMoment(text)
			if err != nil || m <= *last {
				return all, fmt.Errorf("%s after %v: %w", text, *last, errors.Join(err, errors.New("not in order")))
			}
			*last = m
			all = append(all, m)
		}
		left.Add(-int64(count))
	}
	return all, nil
}

func (c *caller) close() {
	if c.socket != nil {
		c.socket.Close()
	}
}

func parseMoment(text string) (moment, error) {
	second, rest, err := zone([]byte(text)[5:], 6)
	if err != nil {
		return 0, err
	}
	serial, _, err := zone(rest, 5)
	return moment(second<<serialBits | serial), err
}

// No number is given out twice, and each client's grow, although the server is killed again and again, started within the same
// second, and its clock set back by an hour twice.
func TestNoNumberIsGivenOutTwice(t *testing.T) {
	const workers = 64
	restarts, scale := kills(t, 4, 20)
	perLife := int64(25_000 * scale)
	dir := t.TempDir()
	var all []moment
	var last [workers]moment
	wrong := 0
	for life := range restarts {
		if life == restarts/3 || life == 2*restarts/3 {
			wrong -= 3600
		}
		server := startChild(t, dir, wrong)
		var left atomic.Int64
		left.Store(perLife)
		var mu sync.Mutex
		var wait sync.WaitGroup
		for w := range workers {
			wait.Go(func() {
				got, err := fetchUntil(server.sequence, &last[w], &left, rand.New(rand.NewPCG(uint64(life), uint64(w))))
				mu.Lock()
				defer mu.Unlock()
				all = append(all, got...)
				if err != nil {
					t.Errorf("connection %d: %v", w, err)
				}
			})
		}
		killAfter(&left, rand.Int64N(perLife/4), server)
		wait.Wait()
		server.kill()
	}
	slices.Sort(all)
	require.Len(t, slices.Compact(slices.Clone(all)), len(all), "a number twice")
	require.Greater(t, int64(len(all)), perLife*int64(restarts)*2/3)
	if scale > 1 {
		require.Greater(t, len(all), 10_000_000)
	}
	t.Logf("%d numbers, %d kills", len(all), restarts)
}

// killAfter kills the server when only so much is left.
func killAfter(left *atomic.Int64, at int64, server *child) {
	for left.Load() > at {
		runtime.Gosched()
	}
	server.kill()
}

// What clients were granted and what remains add up to the limit, exactly, however often the server is killed: a client that lost a
// reply asks again under the same id. Nothing that was granted is unknown later, when some of it is given back. Units remain to the end.
func TestNoUnitIsLostOrMade(t *testing.T) {
	const workers = 64
	lives, scale := kills(t, 5, 50)
	dir := t.TempDir()
	limit := int64(crashLimit)
	if scale > 1 {
		limit = 10 * crashLimit
	}
	server := startChild(t, dir, 0)
	if extra := limit - crashLimit; extra > 0 {
		_, ok := new(caller).call(server.quota, fmt.Sprintf("/increase?amt=%d", extra))
		require.True(t, ok)
	}
	var addr atomic.Pointer[string]
	addr.Store(&server.quota)
	var granted, calls atomic.Int64
	var done atomic.Bool
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() { takeUnits(t, w, &addr, &granted, &calls, &done) })
	}
	for life := range lives {
		target := int64(life+1) * 400 * int64(min(scale, 4))
		for calls.Load() < target && !done.Load() {
			runtime.Gosched()
		}
		server.kill()
		server = startChild(t, dir, 0)
		addr.Store(&server.quota)
	}
	done.Store(true)
	wait.Wait()
	body, ok := new(caller).call(server.quota, "/query")
	require.True(t, ok)
	remaining, err := strconv.ParseInt(strings.TrimSpace(body), 10, 64)
	require.NoError(t, err)
	require.Equal(t, limit, granted.Load()+remaining)
	require.Positive(t, granted.Load())
	require.Positive(t, remaining)
	t.Logf("%d calls, %d units granted, %d kills", calls.Load(), granted.Load(), lives)
}

// takeUnits applies for units until it is told to end, and cancels some of what it was granted. It repeats every call until it has a reply.
func takeUnits(t *testing.T, worker int, addr *atomic.Pointer[string], granted, calls *atomic.Int64, done *atomic.Bool) {
	var c caller
	defer c.close()
	rnd := rand.New(rand.NewPCG(uint64(worker), 1))
	call := func(format string, args ...any) (journal string) {
		path := fmt.Sprintf(format, args...)
		body, ok := "", false
		for !ok {
			body, ok = c.call(*addr.Load(), path)
		}
		calls.Add(1)
		journal, _, _ = strings.Cut(strings.TrimSpace(body), " ")
		return journal
	}
	for i := 0; !done.Load(); i++ {
		amount := 1 + rnd.Int64N(20)
		journal := call("/apply?amt=%d&id=%d-%d", amount, worker, i)
		if journal == "0" {
			continue
		}
		granted.Add(amount)
		if rnd.IntN(5) > 0 {
			continue
		}
		if call("/cancel?jnlsno=%s&id=%d-%d-c", journal, worker, i) == "0" {
			t.Errorf("journal %s was granted and is not there", journal)
		}
		granted.Add(-amount)
	}
}
