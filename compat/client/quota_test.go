package client_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
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

func startService(t *testing.T, s starter, err error) (addr string) {
	t.Helper()
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.Start(l)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return l.Addr().String()
}

func servicesDB(t *testing.T) *db.DB {
	t.Helper()
	c, err := db.Open([]string{filepath.Join(t.TempDir(), "services.kct")}, db.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c.DB(0)
}

func TestSequences(t *testing.T) {
	ctx := context.Background()
	s, err := sequence.New(sequence.Options{DB: servicesDB(t), Reserve: 2, ServerNo: 1, Location: time.UTC})
	addr := startService(t, s, err)
	c := client.NewSequence(addr, "a&b", client.Options{Timeout: 10 * time.Second})
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
	require.EqualError(t, err, `2: invalid operation: "a R" is no sequence number`)
	numbers, err = client.NewSequence(addr, strings.Repeat("n", 256), client.Options{}).Fetch(ctx, 1)
	require.ErrorContains(t, err, "400 Bad Request: a name or an id may have 255 bytes")
	require.Empty(t, numbers, "the words of an error are no numbers")
}

func TestQuotas(t *testing.T) {
	ctx := context.Background()
	s, err := quota.New(quota.Options{DB: servicesDB(t), Limit: 10})
	addr := startService(t, s, err)
	c := client.NewQuota(addr, "", client.Options{})
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
	_, err = client.NewQuota(addr, "unknown", client.Options{}).Query(ctx)
	require.ErrorIs(t, err, client.ErrNoQuota)
	require.ErrorContains(t, err, "404 Not Found")
}
