package client_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// refuse answers each connection before it has read the request, and closes it.
func refuse(t *testing.T, ln net.Listener) {
	for {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = nc.Write([]byte("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
		_ = nc.(*net.TCPConn).CloseRead()
		_ = nc.Close()
	}
}

// A server that closes the connection on a request says why.
func TestRefusalBeforeTheRequestIsSent(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	go refuse(t, ln)
	c := client.New(ln.Addr().String(), client.Options{})
	defer c.Close()
	err = c.DB("").Set(t.Context(), "k", make([]byte, 32<<20), client.Never)
	require.Error(t, err)
	require.EqualError(t, err, "4: miscellaneous error: 413 Too Large")
}

// Bytes that nobody asked for must not pass as the reply to the next call.
func TestUnaskedReply(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	reply := "HTTP/1.1 200 OK\r\nContent-Type: text/tab-separated-values\r\nContent-Length: 8\r\n\r\nvalue\t"
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, text := range []string{reply + "1\n" + reply + "x\n", reply + "2\n"} {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			defer nc.Close()
			_, _ = nc.Read(make([]byte, 4096))
			_, _ = nc.Write([]byte(text))
		}
	}()
	c := client.New(ln.Addr().String(), client.Options{})
	defer c.Close()
	for _, want := range []string{"1", "2"} {
		value, err := c.DB("").Get(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, want, string(value))
	}
	<-done
}

// A master that sends nothing is given up, one that is listened to slowly is not.
func TestFollowOfASilentServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close() // connections wait in its queue
	c := client.New(ln.Addr().String(), client.Options{Timeout: 50 * time.Millisecond})
	defer c.Close()
	var last error
	for _, err := range c.FollowLog(t.Context(), 0, 0, false) {
		last = err
	}
	require.ErrorIs(t, last, context.DeadlineExceeded)
	require.ErrorIs(t, last, client.ErrNetwork)
}

func TestIn(t *testing.T) {
	for d, want := range map[time.Duration]client.Expiry{
		time.Hour: 3600, time.Second: 1, time.Second + 1: 2, 500 * time.Millisecond: 1, 1: 1, 0: client.Never, -1: -1, -time.Hour: -1,
	} {
		require.Equal(t, want, client.In(d), d)
	}
}
