package client_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// A server may close connections that are idle. The next call must not fail for that.
func TestConnectionsThatTheServerCloses(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	const calls = 3
	closed := make(chan struct{})
	go func() {
		for range calls {
			answerOnce(t, ln)
			closed <- struct{}{}
		}
	}()
	c := client.New(ln.Addr().String(), client.Options{})
	defer c.Close()
	for i := range calls {
		require.NoError(t, c.Void(t.Context()), "call %d", i)
		<-closed
	}
}

// answerOnce answers the first request of one connection and closes it.
func answerOnce(t *testing.T, ln net.Listener) {
	t.Helper()
	nc, err := ln.Accept()
	if err != nil {
		t.Error(err)
		return
	}
	defer nc.Close()
	if _, err := nc.Read(make([]byte, 4096)); err != nil {
		t.Error(err)
	}
	if _, err := nc.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")); err != nil {
		t.Error(err)
	}
}

func TestNobodyListens(t *testing.T) {
	c := client.New("127.0.0.1:1", client.Options{}) // no port that the system may give to somebody else
	defer c.Close()
	require.ErrorIs(t, c.Connect(t.Context()), client.ErrNetwork)
	_, err := c.DB("").Cursor().Get(t.Context(), false)
	require.ErrorIs(t, err, client.ErrNetwork)
}
