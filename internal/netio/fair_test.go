package netio_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/netio"
)

// Clients that pipeline without end, more of them than Go has processors, do not hold up a client
// that asks one thing at a time; and they get every reply, in order. The requests are numbers, and
// the reply is the same number.
func TestPipeliningWithoutEndHoldsUpNobody(t *testing.T) {
	var limits netio.Limits
	pool := netio.NewPool()
	connect := func() net.Conn {
		server, client := sockets(t)
		go func() {
			serveNumbers(netio.New(server, pool, netio.Options{Timeout: time.Minute, MaxRequest: 1 << 20, Limits: &limits}))
			server.Close()
		}()
		require.NoError(t, client.SetDeadline(time.Now().Add(time.Minute)))
		return client
	}
	var ended atomic.Bool
	var wg sync.WaitGroup
	var checks []func()
	for range runtime.GOMAXPROCS(0) + 1 {
		client := connect()
		var sent uint64
		var failed error
		wg.Go(func() {
			block := make([]byte, 0, 8<<10)
			for !ended.Load() && failed == nil {
				block = block[:0]
				for range cap(block) / 8 {
					block = binary.BigEndian.AppendUint64(block, sent)
					sent++
				}
				_, failed = client.Write(block)
			}
			if cerr := client.(*net.TCPConn).CloseWrite(); failed == nil {
				failed = cerr
			}
		})
		var got, wrong uint64
		wg.Go(func() {
			reply := make([]byte, 8)
			for ; ; got++ {
				if _, err := io.ReadFull(client, reply); err != nil {
					return
				}
				if binary.BigEndian.Uint64(reply) != got {
					wrong++
				}
			}
		})
		checks = append(checks, func() {
			require.NoError(t, failed)
			require.Zero(t, wrong, "replies out of order")
			require.Equal(t, sent, got, "replies that are missing")
		})
	}
	victim := connect()
	reply := make([]byte, 8)
	for n := range uint64(20) {
		request := binary.BigEndian.AppendUint64(nil, n)
		_, err := victim.Write(request)
		require.NoError(t, err)
		_, err = io.ReadFull(victim, reply)
		require.NoError(t, err)
		require.True(t, bytes.Equal(request, reply))
	}
	ended.Store(true)
	wg.Wait()
	for _, check := range checks {
		check()
	}
}

// serveNumbers answers requests of eight bytes with themselves.
func serveNumbers(c *netio.Conn) {
	defer c.Close()
	for c.WaitByte() == nil {
		if c.Need(8) != nil {
			return
		}
		c.Out = append(c.Out, c.Buffered()[:8]...)
		c.Advance(8)
	}
}
