package replication_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/binproto"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/internal/freeport"
	"gotycoon/internal/klog"
	"gotycoon/internal/netio"
	"gotycoon/internal/vfs"
	"gotycoon/replication"
	"gotycoon/services/leader"
	"gotycoon/ulog"
)

// patience is how long a test waits for something that should happen at once.
const patience = 30 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, time.Millisecond, what)
}

// logText collects log lines without their times.
type logText struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// lines returns the lines of one kind.
func (l *logText) lines(kind string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if _, text, ok := strings.Cut(line, ": ["+kind+"]: "); ok {
			lines = append(lines, strings.TrimSuffix(text, "\n"))
		}
	}
	return lines
}

func (l *logText) logger() *slog.Logger { return slog.New(klog.NewHandler(l, slog.LevelDebug)) }

// node is a server reduced to its databases, its update log and the port for followers.
type node struct {
	t       testing.TB
	sid     uint16
	dir     string
	exprs   []string
	log     logText
	catalog *db.Catalog
	port    int
	timeout time.Duration    // of connections
	now     func() time.Time // of the source
	clock   func() time.Time // of the databases and the log

	removals int64 // see db.Options

	grace time.Duration              // see replication.SourceOptions
	keep  *replication.SourceOptions // what it says of holds; the log of the node has the lines of the update log too
	term  uint64                     // of which it is the primary; 0: it is in no cluster

	fs vfs.FS // of the log; nil: that of the machine

	limits *netio.Limits // of connections

	services bool         // it has a services' database
	expr     string       // what follows its path
	role     *leader.Role // its part in them

	replicas    replication.Replicas
	follower    atomic.Pointer[replication.Follower]
	silence     time.Duration // after which its follower gives its master up
	gapContinue bool
	oneFile     bool // the log has one file
	socket      net.Listener
	done        chan struct{}
	serving     sync.WaitGroup
	mu          sync.Mutex
	conns       []net.Conn // guarded by mu
}

// newNode starts a node with two memory databases, unless others are named.
func newNode(t testing.TB, sid uint16, exprs ...string) *node {
	t.Helper()
	if len(exprs) == 0 {
		exprs = []string{":", "%"}
	}
	return begin(t, &node{sid: sid, exprs: exprs})
}

// begin starts a node.
func begin(t testing.TB, n *node) *node {
	t.Helper()
	n.t, n.dir, n.timeout = t, t.TempDir(), patience
	n.start()
	t.Cleanup(func() {
		n.shut()
		require.NoError(t, n.catalog.Close())
	})
	return n
}

// logLimit is small in tests, so that logs have several files.
func (n *node) logLimit() int64 {
	if _, ok := n.t.(*testing.B); ok || n.oneFile {
		return 0
	}
	return 16 << 10
}

func (n *node) start() {
	n.t.Helper()
	o := db.Options{LogDir: filepath.Join(n.dir, "ulog"), SID: n.sid, LogLimit: n.logLimit(), Now: n.clock, FS: n.fs}
	if n.services {
		o.Services = filepath.Join(n.dir, "services.kct") + n.expr
	}
	if n.keep != nil {
		o.Logger = n.log.logger()
	}
	catalog, err := db.Open(n.exprs, o)
	require.NoError(n.t, err)
	n.catalog = catalog
	if n.services {
		n.role, err = leader.Open(leader.Options{DB: catalog.Services(), SID: n.sid, Logger: n.log.logger()})
		require.NoError(n.t, err)
	}
	n.listen()
}

// restart ends the node as a server ends, and starts it again.
func (n *node) restart() error {
	n.t.Helper()
	n.shut()
	err := n.catalog.Close()
	n.start()
	return err
}

// listen serves followers, on the same port as before.
func (n *node) listen() {
	n.t.Helper()
	if n.port == 0 {
		n.port = freeport.Take(n.t)
	}
	socket, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", n.port))
	require.NoError(n.t, err)
	n.socket, n.done = socket, make(chan struct{})
	o := replication.SourceOptions{
		Log: n.catalog.Log(), SID: n.sid, Databases: n.catalog.Len(), Services: n.services, Done: n.done, Replicas: &n.replicas, Logger: n.log.logger(), Now: n.now, Grace: n.grace, Term: func() uint64 { return n.term }, Past: n.past}
	if n.keep != nil {
		o.Away, o.Most = n.keep.Away, n.keep.Most
	}
	source := replication.NewSource(o)
	handler := binproto.NewHandler(binproto.Options{Catalog: n.catalog.View, Services: n.catalog.Services(), Source: source})
	n.serving.Go(func() {
		for {
			c, err := socket.Accept()
			if err != nil {
				return
			}
			n.mu.Lock()
			n.conns = append(n.conns, c)
			n.mu.Unlock()
			n.serving.Go(func() { n.serve(c, handler) })
		}
	})
}

func (n *node) past() *frame.Past {
	if f := n.follower.Load(); f != nil {
		return f.Past()
	}
	return replication.PastOf(nil, n.catalog)()
}

func (n *node) serve(socket net.Conn, handler *binproto.Handler) {
	defer socket.Close()
	c := netio.New(socket, netio.NewPool(), netio.Options{Timeout: n.timeout, Limits: n.limits})
	defer c.Close()
	if c.WaitByte() == nil {
		handler.ServeOne(c, "")
		_ = c.Flush() // the follower may be gone
	}
}

// shut ends the port and its connections.
func (n *node) shut() {
	if n.socket == nil {
		return
	}
	close(n.done)
	n.socket.Close()
	n.cut()
	n.serving.Wait()
	n.socket = nil
}

// cut ends the connections.
func (n *node) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		c.Close()
	}
	n.conns = nil
}

func (n *node) set(index int, key, value string) {
	n.t.Helper()
	require.NoError(n.t, n.catalog.Numbered(index).Set(nil, []byte(key), []byte(value), record.Never))
}

// get returns the value of a key, "" where there is none.
func (n *node) get(index int, key string) string {
	n.t.Helper()
	value, _, err := n.catalog.Numbered(index).Get(nil, nil, []byte(key))
	if !errors.Is(err, dberr.ErrNoRecord) {
		require.NoError(n.t, err)
	}
	return string(value)
}

// logged returns the updates in the log as text.
func (n *node) logged() []string { return updates(n.t, n.catalog.Log()) }

func updates(t testing.TB, log *ulog.Log) (lines []string) {
	t.Helper()
	r, err := log.NewReader(0)
	require.NoError(t, err)
	defer r.Close()
	return drain(t, r)
}

// drain reads what there is: tests remove files of logs.
func drain(t testing.TB, r *ulog.Reader) (lines []string) {
	t.Helper()
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if _, gap := errors.AsType[*ulog.GapError](err); gap {
			r.SkipGap()
			continue
		}
		require.NoError(t, err)
		lines = append(lines, fmt.Sprintf("%x", e.Message))
	}
}

// update is the text of one update as updates has it.
func update(sid, dbid uint16, op ulog.Op, key, value string) string {
	u := ulog.Update{SID: sid, DBID: dbid, Op: op, Key: []byte(key), Value: []byte(value)}
	return fmt.Sprintf("%x", ulog.AppendMessage(nil, &u))
}

func (n *node) rts() string { return filepath.Join(n.dir, "rts") }

// readRTS returns the text of the RTS file.
func (n *node) readRTS() string {
	n.t.Helper()
	text, err := os.ReadFile(n.rts())
	require.NoError(n.t, err)
	return string(text)
}

func (n *node) savedRTS() ulog.Stamp {
	n.t.Helper()
	at, err := strconv.ParseUint(strings.TrimSuffix(n.readRTS(), "\n"), 10, 64)
	require.NoError(n.t, err)
	return ulog.Stamp(at)
}

// master is the master at a port of this machine.
func master(port int) replication.Master { return replication.Master{Host: "127.0.0.1", Port: port} }

// follow makes the node follow a master until the test or end ends it.
func (n *node) follow(m replication.Master) (f *replication.Follower, end func()) {
	n.t.Helper()
	o := replication.FollowerOptions{
		Catalog: n.catalog, SID: n.sid, RTS: n.rts(), Master: m, Logger: n.log.logger(), Silence: n.silence, GapContinue: n.gapContinue,
	}
	if n.services {
		o.Services = n.role
	}
	f, err := replication.OpenFollower(o)
	require.NoError(n.t, err)
	n.follower.Store(f)
	f.Start()
	end = sync.OnceFunc(func() { require.NoError(n.t, f.Close()) })
	n.t.Cleanup(end)
	return f, end
}

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }
