package netio

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// While there are always news, Go's poller does not hear of them. A poll that waits hears of those
// that have come meanwhile, and of those that come later.
func TestAPollerWithNewsDoesNotTellGo(t *testing.T) {
	p, err := newPoller()
	require.NoError(t, err)
	defer p.close()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	require.NoError(t, p.add(ends[0]))
	send := func() {
		_, err := unix.Write(ends[1], []byte{1})
		require.NoError(t, err)
	}
	news := func() (n int) {
		p.each(func(int, bool) { n++ })
		return n
	}

	require.True(t, p.armed)
	for range 3 {
		send()
		require.NoError(t, p.poll(true, noVigil))
		require.Equal(t, 1, news())
		require.False(t, p.armed)
		require.False(t, p.slept())
	}
	for range 3 {
		done := make(chan error)
		go func() { done <- p.poll(true, noVigil) }()
		send()
		require.NoError(t, <-done)
		require.Equal(t, 1, news())
	}
	send()
	require.NoError(t, p.poll(false, noVigil))
	require.Equal(t, 1, news(), "without a wait nothing changes")
}
