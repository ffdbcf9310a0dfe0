package remote_test

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBigKeys(t *testing.T) {
	clear(t)
	for key, n := range map[string]int{"a": 1, "b": 3000, "c": 200, "da": 200, "d\tb": 5} {
		succeed(t, "", "set", "-db", "tree", key, strings.Repeat("v", n))
	}
	require.Equal(t, "3000\tb\n200\tc\n200\tda\n5 records, keys of 8B, values of 3.3K, on average 681B\n",
		succeed(t, "", "bigkeys", "-db", "tree", "-n", "3"))
	require.Equal(t, "200\tda\n5\td\tb\n2 records, keys of 5B, values of 205B, on average 102B\n",
		succeed(t, "", "bigkeys", "-db", "tree", "d"))
	require.Equal(t, "200\t64 61\n5\t64 09 62\n2 records, keys of 5B, values of 205B, on average 102B\n",
		succeed(t, "", "bigkeys", "-db", "tree", "-sx", "-px", "64"))
	require.Equal(t, `{"key":"b","size":3000}`+"\n"+`{"key_bytes":2,"records":2,"value_bytes":3001}`+"\n",
		succeed(t, "", "bigkeys", "-db", "tree", "-json", "-n", "1", "-max", "2", "-rate", "50"))
	require.Equal(t, "0 records, keys of 0B, values of 0B, on average 0B\n", succeed(t, "", "bigkeys"))
	require.Equal(t, 1, command(t, "", at("bigkeys", "-n", "0")...).exit)
}

// A server that does not know the sizes of a cursor's records, such as the original, tells them in
// full.
func TestBigKeysOfTheOriginal(t *testing.T) {
	clear(t)
	succeed(t, "", "set", "k", "value")
	old := strip(t, "cur_check")
	r := command(t, "", "bigkeys", "-port", old.port)
	require.Zero(t, r.exit, r.stderr)
	require.Equal(t, "5\tk\n1 records, keys of 1B, values of 5B, on average 5B\n", r.stdout)
}

// stripped is a server that knows all procedures but one, and counts its connections.
type stripped struct {
	port  string
	conns atomic.Int64
}

func strip(t *testing.T, without string) *stripped {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	r := new(stripped)
	_, r.port, _ = net.SplitHostPort(l.Addr().String())
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			r.conns.Add(1)
			far, err := net.Dial("tcp", "127.0.0.1:"+port)
			if err != nil {
				_ = near.Close()
				return
			}
			go leaveOut(near, far, "/rpc/"+without)
		}
	}()
	return r
}

// leaveOut hands requests on, and answers those of a path as a server that does not know it.
func leaveOut(near, far net.Conn, path string) {
	defer near.Close()
	defer far.Close()
	in, back := bufio.NewReader(near), bufio.NewReader(far)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if req.URL.Path == path {
			_, _ = near.Write([]byte("HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\n\r\n"))
			continue
		}
		if req.Write(far) != nil {
			return
		}
		res, err := http.ReadResponse(back, req)
		if err != nil || res.Write(near) != nil {
			return
		}
	}
}
