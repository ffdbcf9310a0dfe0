package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/engine/mem"
	"gotycoon/db/engine/relay"
	"gotycoon/httpapi"
)

// sharing returns a server whose databases are in an engine, and what carries its signals.
func sharing(t *testing.T, store *mem.Store, addr string) (*server, *relay.Relay) {
	t.Helper()
	e := store.Server(addr)
	t.Cleanup(func() { _ = e.Close() })
	r := relay.New(e.Signals())
	t.Cleanup(r.Close)
	g := httpapi.NewSignals(r)
	r.Serve(g)
	return newServerWith(t, db.Options{Shared: e}, httpapi.Options{Signals: g}, "one"), r
}

// A client that waits at one server is woken by a signal that is sent at another one, and then sees
// what the sender has done before.
func TestSignalsReachOtherServers(t *testing.T) {
	store := mem.New(mem.Options{})
	here, r := sharing(t, store, "a")
	there, heard := sharing(t, store, "b")
	require.False(t, heard.Stats().Listening, "nobody has waited so far")
	for _, name := range []string{"go", "", strings.Repeat("long", 10_000)} {
		waiter := there.dial(t).send(rpc("get", "WAIT", name, "WAITTIME", "10", "key", "k"))
		require.Eventually(t, func() bool { return there.signals.Anybody() && heard.Stats().Listening }, 5*time.Second, time.Millisecond)
		require.Equal(t, "SIGNALED\t0\n", here.dial(t).ok("set", "SIGNAL", name, "key", "k", "value", "v"+name))
		require.Equal(t, "value\tv"+name+"\n", waiter.receive(false).body)
	}
	require.EqualValues(t, 3, r.Stats().Sent)

	near := here.dial(t).send(rpc("void", "WAIT", "x", "WAITTIME", "10"))
	far := there.dial(t).send(rpc("void", "WAIT", "x", "WAITTIME", "10"))
	eventually(t, here.signals, "x", 1)
	eventually(t, there.signals, "x", 1)
	require.Equal(t, "SIGNALED\t1\n", here.dial(t).ok("void", "SIGNAL", "x"))
	require.Equal(t, "200 OK", near.receive(false).status)
	require.EqualValues(t, 3, r.Stats().Sent, "who waits here comes first, and then the signal is spent")
	require.Equal(t, 1, there.signals.Waiting("x"))
	require.Equal(t, "SIGNALED\t0\n", here.dial(t).ok("void", "SIGNAL", "x", "SIGNALBROAD", ""))
	require.Equal(t, "200 OK", far.receive(false).status)
}
