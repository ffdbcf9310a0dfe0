package netio_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/netio"
)

// The request behind one that has removed a record has to ask for memory, though the reply to the
// first is still unsent; and that reply leaves whatever memory there is.
func TestOnlyTheRequestThatHasRemovedOverdraws(t *testing.T) {
	server, client := sockets(t)
	go func() { _, _ = client.Write([]byte("xx")) }()
	var l netio.Limits
	l.SetBudget(1 << 20)
	c := netio.New(server, netio.NewPool(), limited(&l))
	require.NoError(t, c.Need(2))
	c.Overdraw()
	require.NoError(t, c.Hold(10<<20))
	c.Out = append(make([]byte, 0, 32<<20), "removed"...)
	c.Advance(1)
	require.NoError(t, c.WaitByte())
	require.Equal(t, "removed", string(c.Out), "the reply waits for those to what has come with the request")
	require.ErrorIs(t, c.Hold(10<<20), netio.ErrTooLarge)

	c.Out = append(c.Out, make([]byte, 32<<20-len(c.Out))...) // more than its client takes at once
	flushed := make(chan error, 1)
	go func() { flushed <- c.Flush() }()
	require.Eventually(t, func() bool { return l.Held() > 30<<20 }, 30*time.Second, time.Millisecond)
	_, err := io.CopyN(io.Discard, client, 32<<20)
	require.NoError(t, err)
	require.NoError(t, <-flushed)
	c.Close()
	require.Zero(t, l.Held())
}

// Behind a reply of which a part has not been sent nothing else may come: it would be taken for
// that part.
func TestNothingIsSentBehindAReplyThatWasCut(t *testing.T) {
	onBoth(t, func(t *testing.T, p pair) {
		server, client := p(t)
		var l netio.Limits
		l.SetBudget(1 << 20)
		c := netio.New(server, netio.NewPool(), limited(&l))
		c.Out = bytes.Repeat([]byte("x"), 32<<20)
		require.ErrorIs(t, c.Flush(), netio.ErrTooLarge)
		l.SetBudget(0) // there is memory again, and the client reads
		got := make(chan []byte, 1)
		go func() {
			all, _ := io.ReadAll(client)
			got <- all
		}()
		c.Out = append(c.Out, "error"...)
		require.ErrorIs(t, c.Flush(), netio.ErrTooLarge)
		require.ErrorIs(t, c.Send([]byte("more")), netio.ErrTooLarge)
		c.Close()
		require.NoError(t, server.Close())
		require.NotContains(t, string(<-got), "o")
		require.Zero(t, l.Held())
	})
}
