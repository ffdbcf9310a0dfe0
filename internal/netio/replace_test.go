package netio_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/netio"
)

// waiting is a connection that can wait without a buffer, as one over TLS.
type waiting struct {
	net.Conn
	first []byte
	waits int
}

func (w *waiting) Wait() error {
	w.waits++
	w.first = make([]byte, 1)
	_, err := w.Conn.Read(w.first)
	return err
}

func (w *waiting) Read(p []byte) (int, error) {
	if len(w.first) == 0 {
		return w.Conn.Read(p)
	}
	n := copy(p, w.first)
	w.first = nil
	return n, nil
}

func TestAConnectionIsReplacedBeforeItIsUsed(t *testing.T) {
	server, client := pipe(t)
	unused, _ := pipe(t)
	c := newConn(unused, time.Minute)
	w := &waiting{Conn: server}
	c.Replace(w)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _, _ = client.Write([]byte("request\x00")) })
	require.NoError(t, c.WaitByte())
	require.Equal(t, "r", string(c.Buffered()))
	require.NoError(t, c.Fill())
	require.Equal(t, "request\x00", string(c.Buffered()))
	require.Equal(t, 1, w.waits, "only for the first byte")
	require.NoError(t, c.Stop(0))
	c.Advance(8)
	require.ErrorIs(t, c.WaitByte(), netio.ErrStopped)
}
