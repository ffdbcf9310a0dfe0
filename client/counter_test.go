package client_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// A server that does not answer, or answers something else, is no counter server.
func TestCountersOfAnotherServer(t *testing.T) {
	for name, reply := range map[string]string{
		"silent": "", "other protocol": "HTTP/1.1 400 Bad Request\r\n\r\n",
		"other opaque": "\x91\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09",
		"huge":         "\x91\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x01",
		"short number": "\x91\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01n",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				socket, err := l.Accept()
				if err != nil {
					return
				}
				defer socket.Close()
				_, _ = io.WriteString(socket, reply)
				_, _ = io.Copy(io.Discard, socket)
			}()
			c, err := client.DialCounters(t.Context(), l.Addr().String(), client.Options{Timeout: 2 * time.Second})
			require.NoError(t, err)
			_, err = c.Get(t.Context(), "n")
			require.ErrorIs(t, err, client.ErrNetwork)
			require.ErrorIs(t, c.Noop(t.Context()), client.ErrNetwork)
			<-ended
			require.Error(t, c.Close(), "it has been closed")
		})
	}
}
