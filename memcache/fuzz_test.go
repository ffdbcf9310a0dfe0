package memcache

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzRequests sends any bytes. The service must answer or close the connection, and serve the next
// client.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{"set a 0 0 1\r\nx\r\nget a\r\n", "gets a b c\r\n", "cas a 1 2 3 4\r\nxyz\r\n", "ms a 2 T1 F2 c k q\r\nhi\r\n",
		"mg a v N1 R2 T3 Ox k\r\n", "ma a N0 J1 D2 MD v\r\n", "md a C1 q\r\n", "stats settings\r\n", "flush_all 10 noreply\r\n",
		"incr a 1\r\ndecr a 2\r\n", "gat 1 a\r\ntouch a 2\r\n", "ge\rt \x01a\x00b\r\n", "set a 0 0 -1\r\n", "delete a 0\r\n",
		string(message(opSet, 0, "a", "x", uint32(1), uint32(2))), string(message(opGetKQ, 0, "a", "")),
		string(message(opIncrement, 0, "n", "", uint64(1), uint64(2), uint32(3))), string(message(opStat, 0, "", ""))} {
		f.Add([]byte(seed))
	}
	s := start(f, "opts=f#tout=1", ":")
	f.Fuzz(func(t *testing.T, sent []byte) {
		c, err := net.Dial("tcp4", s.addr)
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		go func() { _, _ = c.Write(sent); _ = c.(*net.TCPConn).CloseWrite() }()
		_, _ = io.Copy(io.Discard, c)
		next := s.dial(t)
		next.send("version\r\n")
		require.NotEmpty(t, next.line())
		next.Close()
	})
}
