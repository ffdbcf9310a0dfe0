package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// A call without an id is made once, also when the server ends the connection instead of answering:
// it may have counted.
func TestCallsThatChangeAQuotaAreNotRepeated(t *testing.T) {
	ctx := context.Background()
	var calls atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) > 1 { // on the connection that the first call has left
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write([]byte("7\n"))
	}))
	defer s.Close()
	c := client.NewQuota(s.Listener.Addr().String(), "", client.Options{})
	defer c.Close()
	for name, call := range map[string]func() error{
		"apply":    func() error { _, _, err := c.Apply(ctx, 1, ""); return err },
		"cancel":   func() error { _, _, err := c.Cancel(ctx, 1, ""); return err },
		"increase": func() error { _, err := c.Increase(ctx, 1, ""); return err },
		"decrease": func() error { _, err := c.Decrease(ctx, 1, ""); return err },
		"empty":    func() error { return c.Empty(ctx) },
	} {
		calls.Store(0)
		_, err := c.Query(ctx)
		require.NoError(t, err)
		require.Error(t, call(), name)
		require.EqualValues(t, 2, calls.Load(), name)
	}
}

// What another kind of server says is neither a number nor an amount.
func TestSequencesAndQuotasOfAnotherServer(t *testing.T) {
	ctx := context.Background()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("1 or two words\n"))
	}))
	defer s.Close()
	numbers := client.NewSequence(s.Listener.Addr().String(), "", client.Options{})
	defer numbers.Close()
	_, err := numbers.Fetch(ctx, 1)
	require.ErrorIs(t, err, client.ErrWrongServer)
	_, err = numbers.Explain(ctx, "aR2011o_cWG00002")
	require.ErrorIs(t, err, client.ErrWrongServer)
	c := client.NewQuota(s.Listener.Addr().String(), "", client.Options{})
	defer c.Close()
	_, err = c.Query(ctx)
	require.ErrorIs(t, err, client.ErrWrongServer)
	_, _, err = c.Apply(ctx, 1, "")
	require.ErrorIs(t, err, client.ErrWrongServer)
}
