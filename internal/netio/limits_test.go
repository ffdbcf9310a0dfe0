package netio_test

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/netio"
)

func limited(l *netio.Limits) netio.Options {
	l.SetTimeout(time.Minute)
	return netio.Options{Limits: l}
}

func TestOneByteFromTimeToTimeIsTooSlow(t *testing.T) {
	onBoth(t, func(t *testing.T, p pair) {
		server, client := p(t)
		var l netio.Limits
		l.SetRequest(50 * time.Millisecond)
		c := netio.New(server, netio.NewPool(), limited(&l))
		defer c.Close()
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
				select {
				case <-stop:
					return
				default:
					_ = client.SetWriteDeadline(time.Now().Add(time.Second))
					_, _ = client.Write([]byte("x"))
				}
			}
		}()
		require.NoError(t, c.WaitByte())
		var err error
		for err == nil {
			err = c.Fill()
		}
		require.ErrorIs(t, err, netio.ErrSlow)
		close(stop)
		server.Close()
		<-done
	})
}

func TestIdleConnectionsEndWhenTheyAreToldTo(t *testing.T) {
	onBoth(t, func(t *testing.T, p pair) {
		server, _ := p(t)
		var l netio.Limits
		l.SetIdle(10 * time.Millisecond)
		c := netio.New(server, netio.NewPool(), limited(&l))
		defer c.Close()
		require.ErrorIs(t, c.WaitByte(), os.ErrDeadlineExceeded)
	})
}

// A reply that its client does not take counts, until it is taken.
func TestUnreadRepliesCount(t *testing.T) {
	var l netio.Limits
	l.SetBudget(64 << 20)
	server, client := sockets(t)
	c := netio.New(server, netio.NewPool(), limited(&l))
	const size = 32 << 20
	c.Out = make([]byte, size)
	done := make(chan error, 1)
	go func() { done <- c.Flush() }()
	require.Eventually(t, func() bool { return l.Held() >= size }, 30*time.Second, time.Millisecond)
	n, err := io.CopyN(io.Discard, client, size)
	require.NoError(t, err)
	require.EqualValues(t, size, n)
	require.NoError(t, <-done)
	require.Zero(t, l.Held())
	l.SetBudget(1 << 20)
	c.Out = make([]byte, size)
	require.ErrorIs(t, c.Flush(), netio.ErrTooLarge)
	c.Close()
}
