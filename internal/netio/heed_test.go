package netio_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/netio"
)

const opening = "HTTP/1.1 "

// request returns a connection that serves one, and its client.
func request(t *testing.T, l *netio.Limits) (*netio.Conn, *net.TCPConn) {
	t.Helper()
	server, client := sockets(t)
	c := netio.New(server, netio.NewPool(), netio.Options{Timeout: time.Minute, Limits: l})
	t.Cleanup(c.Close)
	_, err := client.Write([]byte("request"))
	require.NoError(t, err)
	require.NoError(t, c.WaitByte())
	c.Advance(len(c.Buffered()))
	return c, client.(*net.TCPConn)
}

// until asks a Heed until it has an answer.
func until(t *testing.T, heed func() error, d time.Duration) error {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := heed(); err != nil {
			return err
		}
	}
	return nil
}

func TestWorkForAClientThatHasGoneEnds(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn) error{
		"closed": (*net.TCPConn).Close,
		"reset": func(c *net.TCPConn) error {
			require.NoError(t, c.SetLinger(0))
			return c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, client := request(t, nil)
			heed := c.Heed(opening)
			require.NoError(t, until(t, heed, 50*time.Millisecond))
			require.NoError(t, leave(client))
			require.ErrorIs(t, until(t, heed, 10*time.Second), netio.ErrGone)
		})
	}
}

func TestAClientThatOnlyListensGetsItsReplyWhole(t *testing.T) {
	c, client := request(t, nil)
	require.NoError(t, client.CloseWrite())
	require.NoError(t, until(t, c.Heed(opening), 100*time.Millisecond))
	reply := opening + "200 OK\r\n\r\n"
	c.Out = append(c.Out, reply...)
	require.ErrorIs(t, c.WaitByte(), io.EOF)
	require.NoError(t, c.Flush())
	got := make([]byte, len(reply))
	_, err := io.ReadFull(client, got)
	require.NoError(t, err)
	require.Equal(t, reply, string(got))
}

func TestBytesOfTheNextRequestAreLeftAlone(t *testing.T) {
	c, client := request(t, nil)
	_, err := client.Write([]byte("next"))
	require.NoError(t, err)
	require.NoError(t, client.CloseWrite())
	require.NoError(t, until(t, c.Heed(opening), 50*time.Millisecond))
	for len(c.Buffered()) < len("next") {
		require.NoError(t, c.WaitByte())
	}
	require.Equal(t, "next", string(c.Buffered()))
}

func TestARequestHasItsTime(t *testing.T) {
	var limits netio.Limits
	limits.SetTimeout(time.Minute)
	limits.SetAnswer(30 * time.Millisecond)
	c, client := request(t, &limits)
	heed := c.Heed(opening)
	require.ErrorIs(t, until(t, heed, 10*time.Second), netio.ErrLong)
	_, err := client.Write([]byte("another"))
	require.NoError(t, err)
	require.NoError(t, c.WaitByte())
	require.NoError(t, heed(), "the next one has a time of its own")
}
