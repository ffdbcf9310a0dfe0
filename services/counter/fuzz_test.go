package counter_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/counter/frame"
	"gotycoon/services/counter"
)

// FuzzConnection sends arbitrary bytes in two pieces and the end. The server must answer what it
// understands with well-formed replies, end the connection, and hold nothing any more.
func FuzzConnection(f *testing.F) {
	var all []byte
	for _, op := range []frame.Opcode{frame.Acquire, frame.Get, frame.Release, frame.Dump, frame.Stats, frame.Noop, 0x55} {
		all = frame.AppendRequest(all, op, 9, frame.Args{Resources: 1, Maximum: 2, Name: []byte("n")})
	}
	f.Add(all, 20)
	f.Add([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 3)
	f.Add([]byte("\x90\x02\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00"), 12)
	s, addr := start(f, counter.Options{Buckets: 3})
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		socket, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer socket.Close()
		require.NoError(t, socket.SetDeadline(time.Now().Add(limit)))
		cut = max(0, min(cut, len(data)))
		for _, part := range [][]byte{data[:cut], data[cut:]} {
			_, err = socket.Write(part)
			require.NoError(t, err)
		}
		require.NoError(t, socket.(*net.TCPConn).CloseWrite())
		replies, err := io.ReadAll(socket)
		require.NoError(t, err)
		for len(replies) > 0 {
			require.GreaterOrEqual(t, len(replies), frame.HeaderLen)
			h := frame.DecodeHeader(replies)
			require.Equal(t, frame.ReplyMagic, h.Magic)
			replies = replies[frame.HeaderLen+int(h.Size):]
		}
		require.Eventually(t, func() bool { return s.Stats().Connections == 0 }, limit, time.Millisecond)
		for name, amounts := range dial(t, addr).dump() {
			require.Zero(t, amounts[0], "%q is still held", name)
		}
	})
}
