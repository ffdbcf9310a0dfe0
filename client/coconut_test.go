package client_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/db"
	"gotycoon/services/quota"
	"gotycoon/services/sequence"
)

type starter interface {
	Start(net.Listener)
	Close() error
}

func startCoconut(t *testing.T, s starter, err error) (addr string) {
	t.Helper()
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.Start(l)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return l.Addr().String()
}

func coconutDB(t *testing.T) *db.DB {
	t.Helper()
	c, err := db.Open([]string{filepath.Join(t.TempDir(), "services.kct")}, db.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c.DB(0)
}

func TestCoconutSequences(t *testing.T) {
	ctx := context.Background()
	s, err := sequence.New(sequence.Options{DB: coconutDB(t), Reserve: 2, ServerNo: 1, Location: time.UTC})
	c := &client.Coconut{Addr: startCoconut(t, s, err), Name: "a&b", Timeout: 10 * time.Second}
	numbers, err := c.Fetch(ctx, 1)
	require.NoError(t, err)
	require.Len(t, numbers, 1)
	more, err := c.Fetch(ctx, 100)
	require.NoError(t, err)
	require.Len(t, more, 100)
	require.NotContains(t, more, numbers[0])
	for _, n := range []int{-1, 0, client.MaxFetch + 1} {
		numbers, err = c.Fetch(ctx, n)
		require.ErrorContains(t, err, "1 to 100000 can be fetched")
		require.Empty(t, numbers)
	}
	text, err := c.Explain(ctx, "aR2011o_cWG00002")
	require.NoError(t, err)
	require.Equal(t, "reserve: 2  server_no: 1  secondstamp: 1492962986 (2017-04-23 15:56:26)  serial_no: 2", text)
	_, err = c.Explain(ctx, "a R")
	require.EqualError(t, err, `"a R" is no sequence number`)
	c.Name = strings.Repeat("n", 256)
	numbers, err = c.Fetch(ctx, 1)
	require.ErrorContains(t, err, "400 Bad Request: a name or an id may have 255 bytes")
	require.Empty(t, numbers, "the words of an error are no numbers")
}

func TestCoconutQuotas(t *testing.T) {
	ctx := context.Background()
	s, err := quota.New(quota.Options{DB: coconutDB(t), Limit: 10})
	c := &client.Coconut{Addr: startCoconut(t, s, err)}
	for range 2 {
		journal, remaining, err := c.Apply(ctx, 4, "same call")
		require.NoError(t, err)
		require.Equal(t, []int64{1, 6}, []int64{journal, remaining})
	}
	_, remaining, err := c.Apply(ctx, 7, "")
	require.ErrorIs(t, err, client.ErrQuota)
	require.Equal(t, int64(6), remaining)
	journal, remaining, err := c.Cancel(ctx, 1, "")
	require.NoError(t, err)
	require.Equal(t, []int64{2, 10}, []int64{journal, remaining})
	_, _, err = c.Cancel(ctx, 1, "")
	require.ErrorIs(t, err, client.ErrQuota)
	_, _, err = c.Cancel(ctx, 0, "")
	require.ErrorContains(t, err, "refuses the arguments")
	remaining, err = c.Increase(ctx, 5, "")
	require.NoError(t, err)
	require.Equal(t, int64(15), remaining)
	remaining, err = c.Decrease(ctx, 1, "")
	require.NoError(t, err)
	require.Equal(t, int64(14), remaining)
	_, err = c.Decrease(ctx, -1, "")
	require.ErrorContains(t, err, "refuses the arguments")
	require.NoError(t, c.Empty(ctx))
	remaining, err = c.Query(ctx)
	require.NoError(t, err)
	require.Zero(t, remaining)
	c.Name = "unknown"
	_, err = c.Query(ctx)
	require.ErrorContains(t, err, "404 Not Found")
}

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
	c := &client.Coconut{Addr: s.Listener.Addr().String()}
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
func TestCoconutOfAnotherServer(t *testing.T) {
	ctx := context.Background()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("1 or two words\n"))
	}))
	defer s.Close()
	c := &client.Coconut{Addr: s.Listener.Addr().String()}
	_, err := c.Fetch(ctx, 1)
	require.ErrorContains(t, err, "is it its port")
	_, err = c.Explain(ctx, "aR2011o_cWG00002")
	require.ErrorContains(t, err, "is it its port")
	_, err = c.Query(ctx)
	require.ErrorContains(t, err, "is it its port")
	_, _, err = c.Apply(ctx, 1, "")
	require.ErrorContains(t, err, "is it its port")
}
