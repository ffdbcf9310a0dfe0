package server_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
	"gotycoon/internal/procinfo"
	"gotycoon/server"
)

// allPorts starts a server with all ports, and returns them by the names of their protocols.
func allPorts(t *testing.T, change func(*server.Config)) (*running, map[string]string) {
	t.Helper()
	ports := map[string]string{}
	s := start(t, func(c *server.Config) {
		c.Host = "127.0.0.1"
		c.LogLevel = 8 // errors
		c.Limits.InFlight = 32 << 20
		c.Services.Database = filepath.Join(t.TempDir(), "s.kct")
		for name, port := range map[string]*int{"counter": &c.Services.CounterPort, "lock": &c.Services.LockPort,
			"sequence": &c.Services.SequencePort, "quota": &c.Services.QuotaPort, "memcached": &c.Plugins.MemcachePort} {
			*port = freeport.Take(t)
			ports[name] = fmt.Sprintf("127.0.0.1:%d", *port)
		}
		c.Plugins.MemcacheOptions = "fm"
		c.Services.CounterBuckets = 1000
		if change != nil {
			change(c)
		}
	})
	for _, addr := range ports { // memcached's is opened last
		eventually(t, func() bool {
			c, err := net.Dial("tcp4", addr)
			return err == nil && c.Close() == nil
		})
	}
	ports["http"], ports["binary"] = s.addr, s.addr
	return s, ports
}

// lie returns nonsense, or the beginning of a request that promises more than comes.
func lie(r *rand.Rand, protocol string) []byte {
	huge := binary.BigEndian.AppendUint32
	noise := make([]byte, r.IntN(64))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	var frames [][]byte
	switch protocol {
	case "http":
		frames = [][]byte{
			[]byte("PUT /a HTTP/1.1\r\nContent-Length: 268435455\r\n\r\n"), []byte("PUT /a HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"),
			[]byte("POST /rpc/set HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n"), []byte("GET / HTTP/1.1\r\nX: "), []byte("\r\n\r\n\r\n"),
		}
	case "binary":
		for _, magic := range []byte{0xb1, 0xb4, 0xb6, 0xb8, 0xb9, 0xba} {
			frames = append(frames, huge(huge(huge(huge([]byte{magic}, 0), 1<<31), 1<<31), 1<<30))
		}
	case "counter":
		frames = [][]byte{{0x90, 0x02, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 0xff, 0xff}, {0x90, 0xee, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 9}}
	case "memcached":
		frames = [][]byte{[]byte("set a 0 0 268435456\r\n"), []byte("set a 0 0 -1\r\n"), huge([]byte{0x80, 1, 0xff, 0xff, 8, 0, 0, 0}, 1<<31), []byte("mg\r\nms a 999999999\r\n")}
	case "lock":
		frames = [][]byte{[]byte("lock\n"), []byte("lock a 99999999999999999999\n"), []byte("\n\n\nquit"), make([]byte, 9000)}
	default:
		frames = [][]byte{[]byte("GET /fetch?n=99999999999999999999 HTTP/1.1\r\n\r\n"), []byte("POST / HTTP/1.1\r\nContent-Length: 2147483647\r\n\r\n"), []byte("GET ")}
	}
	return append(frames[r.IntN(len(frames))], noise...)
}

// Clients that send nonsense, or promise bytes that never come, take no memory and no connections
// from other clients. GOTYCOON_BIG=1 sends a million frames.
func TestNonsenseOnEveryPort(t *testing.T) {
	frames := 1500
	if os.Getenv("GOTYCOON_BIG") != "" {
		frames = 1_000_000 / 7
	}
	s, ports := allPorts(t, nil)
	before := procinfo.Anonymous()
	var hostile sync.WaitGroup
	for protocol, addr := range ports {
		hostile.Go(func() {
			r := rand.New(rand.NewPCG(1, 2))
			for range frames {
				c, err := net.Dial("tcp4", addr)
				if err != nil {
					continue // the ports of this machine may run out
				}
				_ = c.SetDeadline(time.Now().Add(patience))
				_, _ = c.Write(lie(r, protocol))
				_ = c.(*net.TCPConn).SetLinger(0)
				c.Close()
			}
		})
	}
	done := make(chan struct{})
	go func() { hostile.Wait(); close(done) }()
	active := s.dial()
	n, most := 0, int64(0)
	for busy := true; busy; n++ {
		select {
		case <-done:
			busy = false
		default:
		}
		require.NoError(t, active.SetDeadline(time.Now().Add(patience)))
		status, _ := active.get(fmt.Sprintf("/rpc/set?key=%d&value=x", n%1000))
		require.Equal(t, 200, status)
		most = max(most, procinfo.Anonymous()-before)
	}
	require.Positive(t, n)
	require.Less(t, most, int64(400<<20), "bytes of memory")
	eventually(t, func() bool {
		_, body := active.get("/rpc/report")
		return strings.Contains(body, "serv_conn_count\t1\n")
	})
}

// Clients that send a byte from time to time are disconnected, however long each wait may be.
func TestSlowSendersAreDisconnected(t *testing.T) {
	_, ports := allPorts(t, func(c *server.Config) {
		c.Timeout, c.Limits.RequestTime = time.Hour, 200*time.Millisecond
	})
	var slow sync.WaitGroup
	for _, protocol := range []string{"http", "binary", "memcached", "sequence", "quota"} {
		first := map[string]string{"http": "G", "binary": "\xb8", "memcached": "get ", "sequence": "G", "quota": "G"}[protocol]
		c, err := net.Dial("tcp4", ports[protocol])
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		_, err = io.WriteString(c, first)
		require.NoError(t, err)
		slow.Go(func() { // a byte that is no request's end
			for {
				if _, err := c.Write([]byte{0}); err != nil {
					return
				}
				_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
				if _, err := c.Read(make([]byte, 100)); err == io.EOF {
					return
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { slow.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("slow senders are still connected")
	}
}

// awaitLimit opens connections until the server has refused the newest one and keeps as many others
// as its limit allows. Earlier connections may take part in the limit until the server notices their
// end, and nothing tells how long the server takes to refuse one. So a connection counts as kept
// until it ends; the server accepts in order, so that the ones before a refused one are kept indeed.
func awaitLimit(t *testing.T, addr string, limit int) {
	t.Helper()
	var kept atomic.Int32
	var newest *atomic.Bool // reports whether it has ended
	var all sync.WaitGroup
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
		all.Wait()
	}()
	eventually(t, func() bool {
		n := int(kept.Load())
		if n > limit {
			return false // one of them has to be refused
		}
		if n == limit && newest.Load() {
			return true
		}
		c, err := net.Dial("tcp4", addr)
		require.NoError(t, err)
		conns = append(conns, c)
		kept.Add(1)
		ended := new(atomic.Bool)
		newest = ended
		all.Go(func() {
			_, _ = c.Read(make([]byte, 1))
			kept.Add(-1)
			ended.Store(true)
		})
		return false
	})
}

func TestConnectionsOverTheLimitAreClosed(t *testing.T) {
	s, ports := allPorts(t, func(c *server.Config) { c.Limits.Conns = 2 })
	for protocol, addr := range ports {
		if protocol == "binary" {
			continue // the same port
		}
		awaitLimit(t, addr, 2)
	}
	require.True(t, s.says("too many connections: limit=2"))
}

func TestRequestsLargerThanTheLimit(t *testing.T) {
	s := start(t, func(c *server.Config) { c.Limits.Request = 1 << 20 })
	status, _ := s.dial().put("a", make([]byte, 1000<<10))
	require.Equal(t, 201, status)
	c := s.dial()
	c.send("PUT /a HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n")
	status, _ = c.reply()
	require.Equal(t, 413, status)
}

// A request that names the same large record again and again is refused before its reply takes all
// memory.
func TestRepliesAreBounded(t *testing.T) {
	s := start(t, func(c *server.Config) { c.Limits.InFlight = 8 << 20 })
	status, _ := s.dial().put("a", make([]byte, 1<<20))
	require.Equal(t, 201, status)
	c := s.dial()
	const times = 100
	request := binary.BigEndian.AppendUint32([]byte{0xba, 0, 0, 0, 0}, times)
	for range times {
		request = append(request, 0, 0, 0, 0, 0, 1, 'a')
	}
	c.send(string(request))
	answer, err := c.in.ReadByte()
	require.NoError(t, err)
	require.EqualValues(t, 0xbf, answer)
	c.requireEOF()
}
