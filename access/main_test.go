package access

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/crypto/bcrypt"

	"gotycoon/internal/klog/klogtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// database is one as rules name it.
type database struct {
	index int
	name  string
}

// Index implements Database.
func (d database) Index() int { return d.index }

// Name implements Database.
func (d database) Name() string { return d.name }

var (
	orders = database{0, "orders.kct"}
	other  = database{1, "other.kch"}
)

// hashOf is a cheap hash of a password.
func hashOf(t testing.TB, password string) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	require.NoError(t, err)
	return string(hash)
}

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) get() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fixture is a guard with a file.
type fixture struct {
	*Guard
	t     testing.TB
	path  string
	clock *clock
	log   *klogtest.Buffer
}

func open(t testing.TB, lines ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, path: filepath.Join(t.TempDir(), "access"), clock: &clock{now: time.Now()}, log: new(klogtest.Buffer)}
	f.write(lines...)
	var err error
	f.Guard, err = Open(Options{Path: f.path, Logger: slog.New(slog.NewTextHandler(f.log, nil)), Now: f.clock.get})
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

func (f *fixture) write(lines ...string) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(f.path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

// from is a visitor with an address.
func (f *fixture) from(addr string) *Visitor {
	return f.Visit(fakeConn{addr: textAddr(addr)})
}

// fakeConn is a connection of which only the address is asked.
type fakeConn struct {
	net.Conn
	addr net.Addr
}

// RemoteAddr implements net.Conn.
func (c fakeConn) RemoteAddr() net.Addr { return c.addr }

// requireDenied checks that a request was refused with a status and a reason.
func requireDenied(t *testing.T, err error, status int, reason string) {
	t.Helper()
	var denied *Denied
	require.ErrorAs(t, err, &denied)
	require.Equal(t, status, denied.Status(), err)
	require.Contains(t, err.Error(), reason)
	require.True(t, strings.HasPrefix(err.Error(), Prefix))
}
