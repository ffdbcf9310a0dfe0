package pg_test

import (
	"context"
	"encoding/base64"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine/pg"
	"gotycoon/db/engine/relay"
)

// waiter is a client that waits for every signal, until it is woken.
type waiter struct{ waits, woken atomic.Int32 }

func (w *waiter) Waiting(string) int { return int(w.waits.Load()) }
func (w *waiter) Anybody() bool      { return true }

func (w *waiter) Wake(string, bool) int {
	if w.waits.CompareAndSwap(1, 0) {
		w.woken.Add(1)
		return 1
	}
	return 0
}

// Who listens is idle for long, and stays, whatever an administrator has given to the role.
func TestAListenerMayBeIdle(t *testing.T) {
	url := setUp(t)
	admin := direct(t, url)
	run(t, admin, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET idle_session_timeout = 50', current_database()); END $$")
	e := open(t, url, pg.Options{})
	defer e.Close()
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- e.Signals().Listen(ctx, func() { close(begun) }, func(string) {}) }()
	<-begun
	select {
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(300 * time.Millisecond):
	}
	cancel()
	<-ended
}

// Signals go from one server to another, also after PostgreSQL has ended the connection of the one
// that listens. PostgreSQL is not asked to notify anybody where no server listens.
func TestSignalsOfServers(t *testing.T) {
	url := setUp(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	watch, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer watch.Close(context.Background())
	_, err = watch.Exec(ctx, "LISTEN gotycoon")
	require.NoError(t, err)

	here, there := &waiter{}, &waiter{}
	a := relay.New(open(t, url, pg.Options{}).Signals())
	defer a.Close()
	a.Serve(here)
	a.Send("x", false)
	a.Send("y", true)
	require.Eventually(t, func() bool { return a.Stats().Sent == 2 }, 10*time.Second, time.Millisecond)

	b := relay.New(open(t, url, pg.Options{}).Signals())
	defer b.Close()
	b.Serve(there)
	b.Listen()
	listens := func() bool { return b.Stats().Listening }
	require.Eventually(t, listens, 10*time.Second, time.Millisecond)
	there.waits.Store(1)
	a.Send("first heard", false)
	n, err := watch.WaitForNotification(ctx)
	require.NoError(t, err)
	message, err := base64.StdEncoding.DecodeString(n.Payload)
	require.NoError(t, err)
	require.Contains(t, string(message), "first heard", "nothing was sent while no server listened")
	require.Eventually(t, func() bool { return there.woken.Load() == 1 }, 10*time.Second, time.Millisecond)

	listener := func() (pid int32) { // 0: there is none
		err := watch.QueryRow(ctx, `SELECT coalesce(max(pid), 0) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'
			AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&pid)
		require.NoError(t, err)
		return pid
	}
	former := listener()
	require.NotZero(t, former)
	_, err = watch.Exec(ctx, "SELECT pg_terminate_backend($1)", former)
	require.NoError(t, err)
	// That b is deaf can be over before anybody looks; that another process listens stays.
	require.Eventually(t, func() bool { pid := listener(); return pid != 0 && pid != former }, 15*time.Second, time.Millisecond)
	require.Eventually(t, listens, 10*time.Second, time.Millisecond)
	there.waits.Store(1)
	a.Send("x", true)
	require.Eventually(t, func() bool { return there.woken.Load() == 2 }, 10*time.Second, time.Millisecond)
}
