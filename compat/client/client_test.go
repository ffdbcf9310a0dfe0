package client_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/server"
)

func TestManyGoroutines(t *testing.T) {
	c, db, _ := open(t)
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			for i := range 50 {
				key := fmt.Sprint(g, " ", i)
				if err := db.Set(t.Context(), key, []byte(key), client.Never); err != nil {
					t.Error(err)
				}
				if value, err := db.Get(t.Context(), key); err != nil || string(value) != key {
					t.Errorf("%q: %q, %v", key, value, err)
				}
			}
		})
	}
	wg.Wait()
	rows, err := db.Status(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 32*50, rows.Int("count"))
	rows, err = c.Report(t.Context())
	require.NoError(t, err)
	require.Less(t, rows.Int("serv_conn_count"), int64(100), "connections are used again")
}

func TestContextEndsACall(t *testing.T) {
	c, db, _ := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err := c.Wait(ctx, "nobody sends this", 20*time.Second)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, client.ErrNetwork)
	require.Less(t, time.Since(begin), 10*time.Second)
	require.ErrorIs(t, db.Set(ctx, "k", nil, client.Never), context.DeadlineExceeded, "before it begins")
	require.NoError(t, db.Set(t.Context(), "k", nil, client.Never))

	limited := client.New(addr, client.Options{Timeout: 50 * time.Millisecond})
	defer limited.Close()
	require.ErrorIs(t, limited.Wait(t.Context(), "nobody sends this", 20*time.Second), context.DeadlineExceeded)
}

func TestSignals(t *testing.T) {
	c, _, _ := open(t)
	require.ErrorIs(t, c.Wait(t.Context(), "s", time.Millisecond), client.ErrTimeout)
	requireWoken(t, c, false, 1)
	requireWoken(t, c, true, 2)
}

// requireWoken makes calls wait until a signal finds as many of them as it must, and looks whether
// it has woken those.
func requireWoken(t *testing.T, c *client.Client, all bool, calls int) {
	t.Helper()
	woken := make(chan error, calls)
	for found := 0; found < calls; {
		for range calls - found {
			go func() { woken <- c.Wait(t.Context(), "s", time.Minute) }()
		}
		for found = 0; found == 0; {
			require.NoError(t, c.Void(t.Context())) // time for the others
			waiting, err := c.Signal(t.Context(), "s", all)
			require.NoError(t, err)
			found = waiting
		}
		for range found {
			select {
			case err := <-woken:
				require.NoError(t, err)
			case <-time.After(10 * time.Second):
				require.Fail(t, "a call that waited was not woken")
			}
		}
	}
}

func TestCallsWait(t *testing.T) {
	c, db, _ := open(t)
	_, err := db.With(client.Signals{Wait: "s", WaitTime: time.Millisecond}).Get(t.Context(), "k")
	require.ErrorIs(t, err, client.ErrTimeout)
	rows, err := db.With(client.Signals{Send: "s", Broadcast: true}).Call(t.Context(), "set", "key", "k", "value", "v")
	require.NoError(t, err)
	require.Equal(t, "0", string(rows["SIGNALED"]))
	require.NoError(t, c.Void(t.Context()))
}

func TestStoppedServerAndClosedClient(t *testing.T) {
	first := startServer(server.DefaultConfig())
	c := client.New(first.addr, client.Options{})
	defer c.Close()
	require.NoError(t, c.Void(t.Context()))
	require.Zero(t, first.stop())
	require.ErrorIs(t, c.Void(t.Context()), client.ErrNetwork)

	require.NoError(t, c.Close())
	require.EqualError(t, c.Void(t.Context()), "6: network error: the client is closed")
}
