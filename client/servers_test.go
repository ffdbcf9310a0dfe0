package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
	s, err := net.Dial("tcp4", w.to)
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
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
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

// clientOf returns a client of several servers.
func clientOf(t *testing.T, o client.Options, addrs ...string) *client.Client {
	t.Helper()
	c := client.New(strings.Join(addrs, ", "), o)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// The primary dies in the middle of many calls, and a follower that has everything takes its place.
// What must hold: every increment that was acknowledged is there once, one whose outcome is unknown
// at most once, and no call fails after the new primary is there.
func TestThePrimaryDiesInTheMiddleOfCalls(t *testing.T) {
	a := startMember(t, 1, nil)
	b := startMember(t, 2, a)
	c := startMember(t, 3, a)
	cl := clientOf(t, client.Options{CheckTime: 20 * time.Millisecond}, c.way.addr, b.way.addr, a.way.addr)
	const workers = 8
	var acknowledged, unknown [workers]atomic.Int64
	var unsent atomic.Int64
	total := func() (n int64) {
		for i := range acknowledged {
			n += acknowledged[i].Load()
		}
		return n
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
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

// fake is a server that says its role, and ends the connection after it has got another call.
type fake struct {
	*httptest.Server
	addr  string
	calls atomic.Int64
	role  atomic.Pointer[string]
}

func newFake(t *testing.T, role string) *fake {
	t.Helper()
	f := &fake{}
	f.role.Store(&role)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/rpc/report" {
			w.Header().Set("Content-Type", "text/tab-separated-values")
			fmt.Fprint(w, *f.role.Load())
			return
		}
		f.calls.Add(1)
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			c.Close()
		}
	}))
	t.Cleanup(f.Close)
	f.addr = f.Listener.Addr().String()
	return f
}

// What may be carried out twice without harm is sent again, and nothing else.
func TestWhatIsSentAgain(t *testing.T) {
	a := startMember(t, 1, nil)
	a.tune(t, "readonly", "true") // so that the first calls go to the fake
	ctx := t.Context()
	for _, tc := range []struct {
		name          string
		call          func(db *client.DB) error
		read, updates bool
	}{
		{"get", func(db *client.DB) error { _, err := db.Get(ctx, "k"); return err }, true, false},
		{"get_bulk", func(db *client.DB) error { _, err := db.GetBulk(ctx, []string{"k"}, false); return err }, true, false},
		{"set", func(db *client.DB) error { return db.Set(ctx, "k", nil, client.Never) }, false, true},
		{"set_bulk", func(db *client.DB) error {
			_, err := db.SetBulk(ctx, map[string][]byte{"k": nil}, client.Never, false)
			return err
		}, false, true},
		{"remove", func(db *client.DB) error { return db.Remove(ctx, "k") }, false, true},
		{"add", func(db *client.DB) error { return db.Add(ctx, "k", nil, client.Never) }, false, false},
		{"append", func(db *client.DB) error { return db.Append(ctx, "k", nil, client.Never) }, false, false},
		{"cas", func(db *client.DB) error { return db.CAS(ctx, "k", nil, nil, client.Never) }, false, false},
		{"seize", func(db *client.DB) error { _, err := db.Seize(ctx, "k"); return err }, false, false},
		{"increment", func(db *client.DB) error { _, err := db.Increment(ctx, "k", 1, 0, client.Never); return err }, false, false},
		{"clear", func(db *client.DB) error { return db.Clear(ctx) }, false, false},
		{"remove_bulk", func(db *client.DB) error { _, err := db.RemoveBulk(ctx, []string{"k"}, false); return err }, false, false},
		{"with a signal", func(db *client.DB) error {
			_, err := db.With(client.Signals{Send: "s"}).Get(ctx, "k")
			return err
		}, false, false},
	} {
		for _, repeat := range []bool{false, true} {
			t.Run(fmt.Sprint(tc.name, " ", repeat), func(t *testing.T) {
				f := newFake(t, "repl_role\tprimary\n")
				cl := clientOf(t, client.Options{RepeatUpdates: repeat}, f.addr, a.way.addr)
				a.tune(t, "readonly", "true")
				require.NoError(t, cl.Connect(ctx)) // finds the fake
				none := "repl_role\treplica\n"
				f.role.Store(&none)
				a.tune(t, "readonly", "false")
				err := tc.call(cl.DB(""))
				require.EqualValues(t, 1, f.calls.Load())
				if tc.read || tc.updates && repeat {
					require.NotErrorIs(t, err, client.ErrNetwork)
					return
				}
				require.ErrorIs(t, err, client.ErrOutcomeUnknown)
				require.NotErrorIs(t, err, client.ErrNotSent)
			})
		}
	}
}

// A server that was the primary in an earlier term is none, whatever it believes.
func TestThePrimaryOfAnEarlierTerm(t *testing.T) {
	former, present := newFake(t, "repl_role\tprimary\nrepl_role_term\t3\n"), newFake(t, "repl_role\tprimary\nrepl_role_term\t4\n")
	cl := clientOf(t, client.Options{FindTime: 50 * time.Millisecond}, present.addr)
	require.NoError(t, cl.Close()) // one address is one server
	both := clientOf(t, client.Options{FindTime: 50 * time.Millisecond, CheckTime: time.Nanosecond}, former.addr, present.addr)
	eventually(t, "the present primary", func() bool {
		require.ErrorIs(t, both.Void(t.Context()), client.ErrNetwork) // a fake answers nothing
		return present.calls.Load() > 0
	})
	calls := former.calls.Load()
	for range 20 {
		require.ErrorIs(t, both.Void(t.Context()), client.ErrNetwork)
	}
	require.Equal(t, calls, former.calls.Load())
}

// A primary that refuses an update for another reason is not asked for ever.
func TestThePrimaryRefusesAnUpdate(t *testing.T) {
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/tab-separated-values")
		if r.URL.Path == "/rpc/report" {
			fmt.Fprint(w, "repl_role\tprimary\n")
			return
		}
		calls.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "ERROR\tDB: 4: permission denied\n")
	}))
	defer s.Close()
	cl := clientOf(t, client.Options{}, s.Listener.Addr().String(), "127.0.0.1:1")
	require.ErrorIs(t, cl.DB("").Add(t.Context(), "k", nil, client.Never), client.ErrReadOnly)
	require.EqualValues(t, 2, calls.Load())
}

// Also with one server an error says whether the call may have been carried out.
func TestErrorsOfTheNetwork(t *testing.T) {
	f := newFake(t, "")
	c := client.New(f.addr, client.Options{})
	err := c.DB("").Set(t.Context(), "k", nil, client.Never)
	require.ErrorIs(t, err, client.ErrOutcomeUnknown)
	require.ErrorIs(t, err, client.ErrNetwork)
	require.EqualValues(t, 1, f.calls.Load())
	f.Close()
	err = c.DB("").Set(t.Context(), "k", nil, client.Never)
	require.ErrorIs(t, err, client.ErrNotSent)
	require.NoError(t, c.Close())
}
