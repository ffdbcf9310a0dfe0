package portserver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/portserver"
)

// shaking is a listener whose connections have to be opened: the client sends "open".
type shaking struct{ net.Listener }

func (l shaking) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &shaken{c}, err
}

type shaken struct{ net.Conn }

func (s *shaken) Open() (net.Conn, error) {
	word := make([]byte, 4)
	if _, err := io.ReadFull(s.Conn, word); err != nil || string(word) != "open" {
		return nil, errors.New("no")
	}
	return s.Conn, nil
}

func TestConnectionsAreOpenedFirst(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := portserver.Start(shaking{l}, portserver.Options{Serve: func(_ context.Context, c net.Conn) { _, _ = c.Write([]byte("hello")) }})
	dial(t, s) // says nothing, and holds up nobody
	for word, want := range map[string]string{"open": "hello", "shut": ""} {
		c := dial(t, s)
		_, err := io.WriteString(c, word)
		require.NoError(t, err)
		text, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	require.NoError(t, s.Close())
}
