package client_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// clientOf returns a client of several servers.
func clientOf(t *testing.T, o client.Options, addrs ...string) *client.Client {
	t.Helper()
	c := client.New(strings.Join(addrs, ", "), o)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// fake is a server that says its role. It ends the connection after it has got another call, or
// answers that call with no rows.
type fake struct {
	*httptest.Server
	addr    string
	calls   atomic.Int64
	role    atomic.Pointer[string]
	answers atomic.Bool
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
		if f.answers.Load() {
			return
		}
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
	none, primary := "repl_role\treplica\n", "repl_role\tprimary\n"
	a := newFake(t, none) // so that the first calls go to the other one
	a.answers.Store(true)
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
		{"touch", func(db *client.DB) error { return db.Touch(ctx, "k", client.Never) }, false, true},
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
				f := newFake(t, primary)
				cl := clientOf(t, client.Options{RepeatUpdates: repeat, CheckTime: time.Hour}, f.addr, a.addr)
				a.role.Store(&none)
				require.NoError(t, cl.Connect(ctx)) // finds the one that ends connections
				f.role.Store(&none)
				a.role.Store(&primary)
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
	require.Eventually(t, func() bool {
		require.ErrorIs(t, both.Void(t.Context()), client.ErrNetwork) // a fake answers nothing
		return present.calls.Load() > 0
	}, 30*time.Second, time.Millisecond, "the present primary")
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
