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

// Who drips a large request, or takes a large reply in drops, holds its memory for ten minutes at
// most, and not a second for each KiB.
func TestDripsDoNotHoldMemoryForLong(t *testing.T) {
	const size = 60 << 20
	rate := int64(size) / 600
	require.Equal(t, int64(600), int64(netio.MoveTime(size, size).Seconds()))
	require.Equal(t, time.Duration(0), netio.MoveTime(0, size))
	require.InDelta(t, 1, netio.MoveTime(rate, size).Seconds(), 0.01)
	require.Equal(t, 10*time.Second, netio.MoveTime(10<<10, 0), "a small one has a second for each KiB")
}

func TestAReplyTakenInDropsEnds(t *testing.T) {
	onBoth(t, func(t *testing.T, p pair) {
		server, client := p(t)
		var l netio.Limits
		l.SetRequest(50 * time.Millisecond)
		c := netio.New(server, netio.NewPool(), limited(&l))
		defer c.Close()
		c.Out = make([]byte, 64<<20)
		done := make(chan error, 1)
		go func() { done <- c.Flush() }()
		one := make([]byte, 1)
		for begun := time.Now(); time.Since(begun) < 30*time.Second; {
			select {
			case err := <-done:
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				c.Out = nil
				c.Close()
				require.Zero(t, l.Held())
				return
			case <-time.After(time.Millisecond):
				// Nothing comes once the reply has ended.
				require.NoError(t, client.SetReadDeadline(time.Now().Add(time.Second)))
				if _, err := client.Read(one); err != nil {
					require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				}
			}
		}
		t.Fatal("it goes on")
	})
}
