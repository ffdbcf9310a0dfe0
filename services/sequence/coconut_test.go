package sequence

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
)

// openDB opens the database in a directory. The caller's cleanups that use it come first.
func openDB(t *testing.T, dir string) *db.DB {
	t.Helper()
	c, err := db.Open([]string{filepath.Join(dir, "services.kct")}, db.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c.DB(0)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

func startSequence(t *testing.T, o SequenceOptions) (addr string) {
	t.Helper()
	if o.DB == nil {
		o.DB = openDB(t, t.TempDir())
	}
	s, err := NewSequenceServer(o)
	require.NoError(t, err)
	l := listen(t)
	s.Start(l)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return l.Addr().String()
}

func startQuota(t *testing.T, o QuotaOptions) (addr string) {
	t.Helper()
	if o.DB == nil {
		o.DB = openDB(t, t.TempDir())
	}
	s, err := NewQuotaServer(o)
	require.NoError(t, err)
	l := listen(t)
	s.Start(l)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return l.Addr().String()
}

// client is one connection on which calls are made.
type client struct {
	t      *testing.T
	socket net.Conn
	reader *bufio.Reader
}

func newClient(t *testing.T, addr string) *client {
	socket := dial(t, addr)
	return &client{t, socket, bufio.NewReader(socket)}
}

func (c *client) get(path string) (status int, body string) {
	c.t.Helper()
	_, err := fmt.Fprintf(c.socket, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	require.NoError(c.t, err)
	return readReply(c.t, c.reader)
}

func (c *client) is(path, body string) {
	c.t.Helper()
	status, got := c.get(path)
	require.Equal(c.t, 200, status, path)
	require.Equal(c.t, body+"\n", got, path)
}

func TestPipelinedAndSplitRequestsAreAnsweredInOrder(t *testing.T) {
	c := newClient(t, startQuota(t, QuotaOptions{Limit: 100}))
	for _, piece := range []string{
		"GET /apply?amt=1 HTTP/1.1\r\n\r\nGET /apply?amt=2 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /que",
		"ry HTTP/1.1\r", "\n", "\r", "\nPOST /query HTTP/1.1\r\nContent-Length: 2\r\n\r\nx", "yGET /query HTTP/1.1\n\n",
	} {
		_, err := io.WriteString(c.socket, piece)
		require.NoError(t, err)
	}
	for _, body := range []string{"1 99\n", "2 97\n", "97\n", "97\n", "97\n"} {
		status, got := readReply(t, c.reader)
		require.Equal(t, 200, status)
		require.Equal(t, body, got)
	}
}

func TestMalformedRequestsEndTheConnection(t *testing.T) {
	addr := startQuota(t, QuotaOptions{})
	for _, text := range []string{
		"GET /query HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 0\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length:\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length:\r\n 5\r\n\r\n",
		"GET /query HTTP/1.1\r\nX: y\r\n Content-Length: 5\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length : 5\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length: \v5\r\n\r\n",
		"GET /query HTTP/1.1\r\nX: y\rContent-Length: 5\r\n\r\n",
		"GET /query HTTP/1.1\r\nX: y\x00\r\n\r\n",
		"GET /query HTTP/1.1\r\n: y\r\n\r\n",
		"GET /query HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET /query HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET  /query HTTP/1.1\r\n\r\n",
		"GET /query HTTP/1.1\r\n" + string(make([]byte, maxHead)),
		"\x00\xff\n\n",
		"GET /increase?amt=1&name=a\x00id HTTP/1.1\r\n\r\n",
	} {
		socket := dial(t, addr)
		_, err := io.WriteString(socket, text)
		require.NoError(t, err)
		one := make([]byte, 1)
		n, err := socket.Read(one)
		require.Zero(t, n, "%.40q", text)
		require.Error(t, err)
	}
}

// A connection that had a large block of numbers gives its memory back.
func TestIdleConnectionsKeepNoBlocks(t *testing.T) {
	addr := startSequence(t, SequenceOptions{})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range 30 {
		c := newClient(t, addr)
		_, body := c.get(fmt.Sprintf("/fetch?count=%d", MaxCount))
		require.Len(t, body, MaxCount*(numberSize+1))
	}
	waitFor(t, "the blocks to go", func() bool { return heap() < before+8<<20 })
}

func TestServersRefuseWhatTheyCannotKeep(t *testing.T) {
	memory, err := db.Open([]string{":"}, db.Options{})
	require.NoError(t, err)
	defer memory.Close()
	_, err = NewSequenceServer(SequenceOptions{DB: memory.DB(0)})
	require.ErrorContains(t, err, "need a database file")
	file := openDB(t, t.TempDir())
	_, err = NewSequenceServer(SequenceOptions{DB: file, ServerNo: 4096})
	require.ErrorContains(t, err, "0 to 4095")
	_, err = NewSequenceServer(SequenceOptions{DB: file, Reserve: -1})
	require.ErrorContains(t, err, "0 to 63")
	_, err = NewQuotaServer(QuotaOptions{DB: file, Limit: -1})
	require.ErrorContains(t, err, "negative")
	_, err = NewQuotaServer(QuotaOptions{DB: file, Export: filepath.Join(t.TempDir(), "no", "dir")})
	require.ErrorContains(t, err, "export file")
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 10*time.Second, time.Millisecond, what)
}
