package lock

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/netio"
	"gotycoon/services"
)

// A client that does not read what others cause holds up nobody.
func TestAClientThatDoesNotReadHoldsUpNobody(t *testing.T) {
	t.Parallel()
	inLoopsAndAlone(t, func(t *testing.T, start func(testing.TB, Options) (*Server, string)) {
		const keys = 2500 // more than the buffers of a socket take
		s, addr := start(t, Options{})
		a, deaf := dial(t, addr), dial(t, addr)
		long := strings.Repeat("k", 6000)
		for i := range keys {
			require.Equal(t, "GRANTED", a.call("lock %d%s", i, long)[:7])
		}
		for i := range keys {
			deaf.send("lock %d%s", i, long)
		}
		require.Eventually(t, func() bool { return s.Stats().Waiters == keys }, waitLimit, time.Millisecond)
		for i := range keys {
			require.Equal(t, "RELEASED", a.call("release %d%s", i, long)[:8])
		}
		require.Equal(t, keys, s.Stats().Holders)
		for i := range keys {
			require.Equal(t, fmt.Sprintf("GRANTED 1 0 %d%s 120", i, long), deaf.line(), "all is there, in order")
		}
	})
}

// What a client does not take at all ends its connection, and frees what it holds.
func TestAClientThatNeverReadsIsEnded(t *testing.T) {
	t.Parallel()
	inLoopsAndAlone(t, func(t *testing.T, start func(testing.TB, Options) (*Server, string)) {
		s, addr := start(t, Options{Options: services.Options{Timeout: 50 * time.Millisecond}})
		a, deaf := dial(t, addr), dial(t, addr)
		require.Equal(t, "GRANTED 1 0 k 120", deaf.call("lock k"))
		a.send("lock k")
		line := "status " + strings.Repeat("k", 8000) + "\n"
		var sending sync.WaitGroup
		defer sending.Wait()
		sending.Go(func() {
			for {
				if _, err := deaf.Write([]byte(line)); err != nil {
					return
				}
			}
		})
		require.Equal(t, "GRANTED 1 0 k 120", a.line())
		require.Eventually(t, func() bool { return s.Stats().Conns == 1 }, 10*time.Second, time.Millisecond)
		deaf.Close()
	})
}

// What a client says counts although it has not read what others have caused.
func TestAClientThatDoesNotReadIsHeard(t *testing.T) {
	const keys = 1500 // more than the buffers of a socket take
	inLoopsAndAlone(t, func(t *testing.T, start func(testing.TB, Options) (*Server, string)) {
		s, addr := start(t, Options{})
		a, b, deaf := dial(t, addr), dial(t, addr), dial(t, addr)
		long := strings.Repeat("k", 6000)
		require.Equal(t, "GRANTED 1 0 mine 120", deaf.call("lock mine"))
		b.send("lock mine")
		for i := range keys {
			a.call("lock %d%s", i, long)
			deaf.send("lock %d%s", i, long)
		}
		require.Eventually(t, func() bool { return s.Stats().Waiters == keys+1 }, waitLimit, time.Millisecond)
		for i := range keys {
			a.call("release %d%s", i, long)
		}
		deaf.send("release mine")
		require.Equal(t, "GRANTED 1 0 mine 120", b.line())
		for i := range keys {
			require.Equal(t, fmt.Sprintf("GRANTED 1 0 %d%s 120", i, long), deaf.line())
		}
		require.Equal(t, "RELEASED 0 1 mine", deaf.line())
	})
}

// Connections end while others send them lines, with and without room for the lines.
func TestConnectionsEndWhileOthersPush(t *testing.T) {
	const rounds, keys = 20, 100
	inLoopsAndAlone(t, func(t *testing.T, start func(testing.TB, Options) (*Server, string)) {
		s, addr := start(t, Options{})
		a := dial(t, addr)
		long := strings.Repeat("k", 6000)
		for round := range rounds {
			for i := range keys {
				require.Equal(t, "GRANTED", a.call("lock %d%s", i, long)[:7])
			}
			deaf := dial(t, addr)
			require.NoError(t, deaf.Conn.(*net.TCPConn).SetReadBuffer(4<<10))
			for i := range keys {
				deaf.send("lock %d%s", i, long)
			}
			require.Eventually(t, func() bool { return s.Stats().Waiters == keys }, waitLimit, time.Millisecond)
			for i := range keys {
				if i == keys*round/rounds {
					deaf.Close()
				}
				require.Equal(t, "RELEASED", a.call("release %d%s", i, long)[:8])
			}
			require.Eventually(t, func() bool { return s.Stats().Conns == 1 && s.Stats().Keys == 0 }, waitLimit, time.Millisecond)
		}
	})
}

// A server stops while connections rest, and while others send lines to a client that does not read.
func TestStopWhileOthersPush(t *testing.T) {
	const keys = 1000
	for _, loops := range []*netio.Loops{nil, netio.NewLoops(1)} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		s, err := New(Options{Options: services.Options{Loops: loops}})
		require.NoError(t, err)
		s.Start(l)
		a, deaf, idle := dial(t, l.Addr().String()), dial(t, l.Addr().String()), dial(t, l.Addr().String())
		long := strings.Repeat("k", 6000)
		for i := range keys {
			require.Equal(t, "GRANTED", a.call("lock %d%s", i, long)[:7])
			deaf.send("lock %d%s", i, long)
		}
		require.Equal(t, "GRANTED", idle.call("lock mine")[:7])
		require.Eventually(t, func() bool { return s.Stats().Waiters == keys }, waitLimit, time.Millisecond)
		for i := range keys {
			a.send("release %d%s", i, long)
		}
		require.Equal(t, "RELEASED", a.line()[:8])
		require.NoError(t, s.Close())
		require.Zero(t, s.Stats().Keys)
		loops.Close()
	}
}

// Lists that their clients do not read keep nobody from having his own.
func TestUnreadListsHoldUpNobody(t *testing.T) {
	const keys = 1500 // more than the buffers of a socket take
	limits := new(netio.Limits)
	limits.SetBudget(1 << 30)
	_, addr := start(t, Options{Options: services.Options{Timeout: time.Hour, Limits: limits}})
	a := dial(t, addr)
	long := strings.Repeat("k", 6000)
	for i := range keys {
		require.Equal(t, "GRANTED", a.call("lock %d%s", i, long)[:7])
	}
	for i := range 2 * maxLists {
		before := limits.Held()
		deaf := dial(t, addr)
		require.NoError(t, deaf.Conn.(*net.TCPConn).SetReadBuffer(4<<10))
		deaf.send([]string{"list", "status-by-key"}[i%2])
		require.Eventually(t, func() bool { return limits.Held() > before }, waitLimit, time.Millisecond, "it waits for its client")
	}
	p := dial(t, addr)
	lists := func() (held int64) {
		p.send("list\nstatus-by-grants\nstatus-by-requests\nstatus end")
		for range keys {
			require.Equal(t, "HOLDER ", p.line()[:7])
		}
		require.Equal(t, "END", p.line())
		for range 2 * keys {
			require.Equal(t, "STATUS 1 0 ", p.line()[:11])
		}
		require.Equal(t, "STATUS 0 0 end", p.line())
		return limits.Held()
	}
	held := lists()
	for end, before := time.Now().Add(waitLimit), int64(0); held != before; { // the last of the deaf may still be about to wait
		require.True(t, time.Now().Before(end), "a list that has been read counts for ever")
		before, held = held, lists()
	}
	limits.SetBudget(held / 2) // short lists may use the reserve for small requests, a quarter of the budget
	require.Equal(t, "TOO_MANY_LISTS", p.call("list"))
	require.Equal(t, "TOO_MANY_LISTS", p.call("status-by-key"))
	require.Equal(t, "STATUS 0 0 end", p.call("status end"))
}

// What others cause for a client that does not read is bounded.
func TestTooManyLinesForAClientEndIt(t *testing.T) {
	s, err := New(Options{})
	require.NoError(t, err)
	client, socket := net.Pipe() // takes nothing until it is read
	defer client.Close()
	var serving sync.WaitGroup
	defer serving.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan struct{})
	serving.Go(func() {
		defer close(served)
		c := s.newConn(ctx, socket, nil)
		c.Run()
		c.End()
	})
	other := &step{by: &session{push: func() {}}}
	name := strings.Repeat("k", 8000)
	_, err = client.Write([]byte("lock " + name + "\n"))
	require.NoError(t, err)
	line := make([]byte, 9000)
	_, err = io.ReadFull(client, line[:len("GRANTED 1 0  120\n")+len(name)])
	require.NoError(t, err)
	sh := s.table.shard([]byte(name))
	sh.mu.Lock()
	to := sh.keys[name].holders.first.session
	sh.mu.Unlock()
	const enough = 10_000 // lines; whoever has lost count of them has a while to notice
	for i := 0; ; i++ {
		require.Less(t, i, 2*enough)
		other.tell(to, name, reply{word: wordStatus})
		other.deliver()
		select {
		case <-served:
			require.Greater(t, i, maxLines/9000)
			require.NoError(t, s.Close())
			return
		case <-pauseAfter(i, enough):
		}
	}
}

// pauseAfter returns at once until there were enough, and then after a few milliseconds.
func pauseAfter(i, enough int) <-chan time.Time {
	if i > enough {
		return time.After(5 * time.Millisecond)
	}
	at := make(chan time.Time)
	close(at)
	return at
}

// Locks come and go; memory does not grow with their number.
func TestMemoryStaysFlat(t *testing.T) {
	pairs := 100_000
	if big() {
		pairs = 10_000_000
	}
	_, addr := start(t, Options{})
	churn(t, addr, pairs/10)
	before := heap()
	churn(t, addr, pairs)
	after := heap()
	t.Logf("%d pairs: %d KiB before, %d KiB after", pairs, before>>10, after>>10)
	require.Less(t, after, before+4<<20)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// churn locks and releases new keys all the time over eight connections.
func churn(t *testing.T, addr string, pairs int) {
	const conns, together = 8, 100
	var clients sync.WaitGroup
	for i := range conns {
		p := dial(t, addr)
		clients.Go(func() {
			defer p.Close()
			_ = p.SetDeadline(time.Time{})
			for n := 0; n < pairs/conns; n += together {
				var b strings.Builder
				for j := range together {
					fmt.Fprintf(&b, "lock %d-%d\nrelease %[1]d-%[2]d\n", i, n+j)
				}
				if _, err := p.Write([]byte(b.String())); err != nil {
					t.Error(err)
					return
				}
				for range 2 * together {
					line, err := p.in.ReadSlice('\n')
					if err != nil || line[0] != 'G' && line[0] != 'R' {
						t.Errorf("%q: %v", line, err)
						return
					}
				}
			}
		})
	}
	clients.Wait()
}

// What the socket has not taken of a line that others send is sent before the connection's own
// replies: begin waits until it is put back.
func TestTheRestOfALineComesFirst(t *testing.T) {
	loops := netio.NewLoops(1)
	require.NotNil(t, loops)
	defer loops.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	bare := netio.ListenBare(listener.(*net.TCPListener))
	defer bare.Close()
	s, err := New(Options{Options: services.Options{Loops: loops}})
	require.NoError(t, err)
	client := dial(t, bare.Addr().String())
	socket, err := bare.Accept()
	require.NoError(t, err)
	defer socket.Close()
	c := s.newConn(context.Background(), socket, func() {})
	defer c.in.Close()
	other := &step{by: &session{push: func() {}}}
	other.tell(&c.session, "k", reply{word: wordTimeout})
	c.mu.Lock()
	line := c.takeLines()
	c.mu.Unlock()
	whole := string(line)
	c.attempt.out = line[:3]
	require.NoError(t, c.raw.Control(c.attempt.onSocket))
	require.Equal(t, 3, c.attempt.n)
	synctest.Test(t, func(t *testing.T) {
		said := false
		go func() {
			c.begin()
			c.say("OWN REPLY")
			said = true
		}()
		synctest.Wait()
		require.False(t, said)
		require.False(t, c.putBack(line, 3))
		synctest.Wait()
		require.True(t, said)
	})
	require.NoError(t, c.flush())
	require.Equal(t, strings.TrimSuffix(whole, "\n"), client.line())
	require.Equal(t, "OWN REPLY", client.line())
}
