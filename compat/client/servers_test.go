package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/server"
)

// patience is how long a test waits for something that should happen soon.
const patience = 30 * time.Second

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, time.Millisecond, what)
}

// clientOf returns a client of several servers.
func clientOf(t *testing.T, o client.Options, addrs ...string) *client.Client {
	t.Helper()
	c := client.New(strings.Join(addrs, ", "), o)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// member is a server of a cluster, behind a way that a test can cut.
type member struct {
	*testServer
	way *way
	own *client.Client // straight to the server
}

// startMember runs a server with an update log that refuses updates while it follows a master.
func startMember(t *testing.T, sid int, master *member) *member {
	t.Helper()
	dir := t.TempDir()
	cfg := server.DefaultConfig()
	cfg.UpdateLog, cfg.ServerID, cfg.RTSPath = filepath.Join(dir, "ulog"), sid, filepath.Join(dir, "rts")
	if master != nil {
		cfg.Replication.ReadOnly = true
		cfg.MasterHost, cfg.MasterPort = "127.0.0.1", master.port(t)
	}
	m := &member{testServer: startServer(cfg)}
	m.own = client.New(m.addr, client.Options{})
	m.way = newWay(t, m.addr)
	t.Cleanup(func() {
		require.NoError(t, m.own.Close())
		m.way.close()
		m.stop()
	})
	return m
}

func (m *member) port(t *testing.T) (port int) {
	t.Helper()
	_, err := fmt.Sscanf(m.addr, "127.0.0.1:%d", &port)
	require.NoError(t, err)
	return port
}

func (m *member) tune(t *testing.T, params ...string) {
	t.Helper()
	_, err := m.own.DB("").Call(t.Context(), "tune_replication", params...)
	require.NoError(t, err)
}

// promote makes a member the primary.
func (m *member) promote(t *testing.T) {
	t.Helper()
	m.tune(t)
	m.tune(t, "readonly", "false")
}

// way forwards connections to a server, until it is cut.
type way struct {
	addr   string
	socket net.Listener
	to     string
	mu     sync.Mutex
	dead   bool
	conns  []net.Conn
	wg     sync.WaitGroup
}

func newWay(t *testing.T, to string) *way {
	t.Helper()
	socket, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	w := &way{addr: socket.Addr().String(), socket: socket, to: to}
	w.wg.Go(func() {
		for {
			c, err := socket.Accept()
			if err != nil {
				return
			}
			w.wg.Go(func() { w.forward(c) })
		}
	})
	return w
}

func (w *way) forward(c net.Conn) {
	defer c.Close()
	w.mu.Lock()
	to := w.to
	w.mu.Unlock()
	s, err := net.Dial("tcp4", to)
	if err != nil || !w.keep(c, s) {
		return
	}
	defer s.Close()
	w.wg.Go(func() { _, _ = io.Copy(s, c); s.Close() })
	_, _ = io.Copy(c, s)
}

func (w *way) keep(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		conns[1].Close()
		return false
	}
	w.conns = append(w.conns, conns...)
	return true
}

// cut ends all connections, in the middle of whatever they do, and refuses new ones.
func (w *way) cut() {
	w.drop(func() { w.dead = true })
}

// turn ends all connections, and leads new ones to another server.
func (w *way) turn(to string) {
	w.drop(func() { w.to = to })
}

// drop changes where connections lead to, and ends all that there are.
func (w *way) drop(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

func (w *way) close() {
	w.cut()
	w.socket.Close()
	w.wg.Wait()
}

// The primary dies in the middle of many calls, and a follower that has everything takes its place.
// What must hold: every increment that was acknowledged is there once, one whose outcome is unknown
// at most once, and no call fails after the new primary is there.
func TestThePrimaryDiesInTheMiddleOfCalls(t *testing.T) {
	a := startMember(t, 1, nil)
	b := startMember(t, 2, a)
	c := startMember(t, 3, a)
	cl := clientOf(t, client.Options{CheckTime: 20 * time.Millisecond, FindTime: 2 * patience}, c.way.addr, b.way.addr, a.way.addr)
	const workers = 8
	var acknowledged, unknown [workers]atomic.Int64
	var unsent atomic.Int64
	total := func() (n int64) {
		for i := range acknowledged {
			n += acknowledged[i].Load()
		}
		return n
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	quit := make(chan struct{})
	for i := range workers {
		wg.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				_, err := cl.DB("").Increment(ctx, fmt.Sprint(i), 1, 0, client.Never)
				switch {
				case err == nil:
					acknowledged[i].Add(1)
				case errors.Is(err, client.ErrOutcomeUnknown):
					unknown[i].Add(1)
				default:
					unsent.Add(1)
				}
			}
		})
	}
	eventually(t, "calls", func() bool { return total() > 500 })
	a.way.cut()
	last := position(t, a)
	for _, m := range []*member{b, c} {
		eventually(t, "the followers to have everything", func() bool { return follows(t, m) >= last })
	}
	a.stop()
	a.ended <- 0
	b.promote(t)
	c.tune(t, "host", "127.0.0.1", "port", fmt.Sprint(b.port(t)))
	before := total()
	eventually(t, "calls at the new primary", func() bool { return total() > before+500 })
	close(quit)
	wg.Wait()
	require.Zero(t, unsent.Load(), "a call waits for a primary")
	for i := range workers {
		value, err := b.own.DB("").Increment(ctx, fmt.Sprint(i), 0, 0, client.Never)
		require.NoError(t, err)
		require.GreaterOrEqual(t, value, acknowledged[i].Load(), "an acknowledged increment is lost")
		require.LessOrEqual(t, value, acknowledged[i].Load()+unknown[i].Load(), "an increment was done twice")
		require.LessOrEqual(t, unknown[i].Load(), int64(1))
	}
}

// position returns the newest time stamp of a member's log.
func position(t *testing.T, m *member) uint64 {
	t.Helper()
	files, err := m.own.UlogList(t.Context())
	require.NoError(t, err)
	return files[len(files)-1].Last
}

// follows returns the position of a follower.
func follows(t *testing.T, m *member) uint64 {
	t.Helper()
	rows, err := m.own.Report(t.Context())
	require.NoError(t, err)
	return uint64(rows.Int("repl_timestamp"))
}

// A planned switch: the primary refuses updates, then another one takes them. No call fails.
func TestThePrimaryIsChanged(t *testing.T) {
	a := startMember(t, 1, nil)
	b := startMember(t, 2, a)
	cl := clientOf(t, client.Options{}, b.way.addr, a.way.addr)
	db := cl.DB("")
	require.NoError(t, db.Set(t.Context(), "k", []byte("1"), client.Never))
	a.tune(t, "readonly", "true")
	last := position(t, a)
	eventually(t, "the follower to have everything", func() bool { return follows(t, b) >= last })
	var wg sync.WaitGroup
	wg.Go(func() { b.promote(t) })
	_, err := db.Increment(t.Context(), "n", 1, 0, client.Never) // waits for the new primary
	require.NoError(t, err)
	wg.Wait()
	a.tune(t, "host", "127.0.0.1", "port", fmt.Sprint(b.port(t)))
	for range 10 {
		_, err := db.Increment(t.Context(), "n", 1, 0, client.Never)
		require.NoError(t, err)
	}
	eventually(t, "the former primary to follow", func() bool {
		value, err := a.own.DB("").Get(t.Context(), "n")
		return err == nil && len(value) == 8 && value[7] == 11
	})
}

// A former primary that takes updates although it follows another server is left within CheckTime.
func TestAPrimaryThatIsNoneAnyMore(t *testing.T) {
	a, b := startMember(t, 1, nil), startMember(t, 2, nil)
	b.tune(t, "host", "127.0.0.1", "port", fmt.Sprint(a.port(t)))
	cl := clientOf(t, client.Options{CheckTime: time.Millisecond}, a.way.addr, b.way.addr)
	require.NoError(t, cl.DB("").Set(t.Context(), "k", []byte("1"), client.Never))
	b.tune(t)
	a.tune(t, "host", "127.0.0.1", "port", fmt.Sprint(b.port(t)))
	eventually(t, "an update at the other one", func() bool {
		require.NoError(t, cl.DB("").Set(t.Context(), "k", []byte("2"), client.Never))
		value, err := b.own.DB("").Get(t.Context(), "k")
		return err == nil && string(value) == "2"
	})
}

func TestNoServerIsThePrimary(t *testing.T) {
	a := startMember(t, 1, nil)
	a.tune(t, "readonly", "true")
	dead := newWay(t, "127.0.0.1:1")
	defer dead.close()
	cl := clientOf(t, client.Options{FindTime: 50 * time.Millisecond}, a.way.addr, dead.addr)
	err := cl.DB("").Set(t.Context(), "k", nil, client.Never)
	require.ErrorIs(t, err, client.ErrNoPrimary)
	require.ErrorIs(t, err, client.ErrNotSent)
	require.ErrorContains(t, err, a.way.addr+": none")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = cl.DB("").Get(ctx, "k")
	require.ErrorIs(t, err, client.ErrNetwork)
	require.NoError(t, cl.Close())
	require.ErrorContains(t, cl.Void(t.Context()), "the client is closed")
}

// Reads may go to replicas, and go on when one of them dies.
func TestReadsFromReplicas(t *testing.T) {
	a := startMember(t, 1, nil)
	b := startMember(t, 2, a)
	cl := clientOf(t, client.Options{ReadReplicas: true, MaxLag: patience}, a.way.addr, b.way.addr)
	require.NoError(t, cl.DB("").Set(t.Context(), "k", []byte("v"), client.Never))
	read := func(m *member) int64 {
		rows, err := m.own.Report(t.Context())
		require.NoError(t, err)
		return rows.Int("cnt_get")
	}
	eventually(t, "reads at both", func() bool {
		_, err := cl.DB("").Get(t.Context(), "k")
		require.True(t, err == nil || errors.Is(err, client.ErrNoRecord), err) // the replica may be behind
		return read(a) > 3 && read(b) > 3
	})
	b.way.cut()
	for range 10 {
		value, err := cl.DB("").Get(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, "v", string(value))
	}
}
