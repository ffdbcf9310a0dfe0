//go:build linux

package main

import (
	"bufio"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
)

// A late request must not move those after it, and the connections share the rate evenly.
func TestIntendedTimesDependOnTheNumberAlone(t *testing.T) {
	v := &volley{conns: 4, rate: 1000, length: time.Second}
	require.Equal(t, time.Duration(0), v.due(0, 0))
	require.Equal(t, time.Millisecond, v.due(1, 0))
	require.Equal(t, 4*time.Millisecond, v.due(0, 1))
	require.Equal(t, 999*time.Millisecond, v.due(3, 249))
	require.Equal(t, never, v.due(0, 250))
	seen := 0
	for conn := range v.conns {
		for k := 0; v.due(conn, k) != never; k++ {
			seen++
		}
	}
	require.Equal(t, 1000, seen)
	v = &volley{conns: 3, rate: 7, length: 20 * 365 * 24 * time.Hour}
	require.InDelta(t, float64(365*24*time.Hour), float64(v.due(0, 365*24*3600*7/3)), float64(time.Second), "times do not drift")
}

func TestCountedVolleyEndsAfterItsCount(t *testing.T) {
	v := &volley{conns: 4, count: 10}
	require.Equal(t, time.Duration(0), v.due(1, 2))
	require.Equal(t, never, v.due(2, 2))
	var served atomic.Int64
	v.addr = lineServer(t, func(string) { served.Add(1) })
	v.protocol = lockTurns()
	r, err := v.run()
	require.NoError(t, err)
	require.Equal(t, 10, r.count)
	require.Equal(t, int64(10), served.Load())
	require.Equal(t, uint64(10), r.waits.Total())
	require.Positive(t, r.perSecond())
}

// A server that stands still once must show in the waits of all requests that were due meanwhile.
// The stall lasts a fifth of a second at least, so half of the requests that become due in it wait
// for a tenth of a second at least, however slow the machine is.
func TestAStallCountsForEveryRequestThatWasDue(t *testing.T) {
	const stall = 200 * time.Millisecond
	stalled := false
	v := &volley{addr: lineServer(t, func(string) {
		if !stalled {
			stalled = true
			<-time.After(stall)
		}
	}), protocol: lockTurns(), conns: 1, rate: 1000, length: stall}
	r, err := v.run()
	require.NoError(t, err)
	require.Equal(t, 200, r.count)
	require.GreaterOrEqual(t, r.waits.Above(stall/2), uint64(100))
	require.LessOrEqual(t, r.late.Total(), uint64(200))
}

func TestVolleyReportsWhatGoesWrong(t *testing.T) {
	v := &volley{addr: lineServer(t, func(string) {}), protocol: lineProtocol("PONG\n"), conns: 2, count: 5}
	_, err := v.run()
	require.ErrorContains(t, err, `instead of "PONG\n"`)

	l, err := net.Listen("tcp4", freeport.Addr(t))
	require.NoError(t, err)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_ = c.Close()
		}
	}()
	v.addr, v.conns = l.Addr().String(), 1
	_, err = v.run()
	require.Error(t, err, "a connection that the server closes")
	require.NoError(t, l.Close())
	_, err = v.run()
	require.ErrorContains(t, err, "connection refused")
}

func lineProtocol(reply string) protocol {
	return protocol{request: func(out []byte, _ shot) []byte { return append(out, "PING\n"...) }, reply: lineReply(reply)}
}

// lineServer answers lines with themselves, after a call of heed.
func lineServer(t *testing.T, heed func(line string)) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for in := bufio.NewReader(c); ; {
					line, err := in.ReadString('\n')
					if err != nil {
						return
					}
					heed(line)
					if _, err := c.Write([]byte(line)); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
