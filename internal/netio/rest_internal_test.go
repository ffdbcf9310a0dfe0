//go:build linux

package netio

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const waitLimit = 20 * time.Second // of anything that a test waits for

// bareConn returns a connection that may rest in loops, and its client.
func bareConn(t *testing.T, loops *Loops) (c *Conn, bare *Bare, client net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	listener := ListenBare(ln.(*net.TCPListener))
	defer listener.Close()
	client, err = net.Dial("tcp4", ln.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	require.NoError(t, client.SetDeadline(time.Now().Add(waitLimit)))
	socket, err := listener.Accept()
	require.NoError(t, err)
	bare = socket.(*Bare)
	t.Cleanup(func() { bare.Close() })
	return New(bare, NewPool(), Options{Timeout: time.Minute, Loops: loops}), bare, client
}

// idleLoops are loops without goroutines.
func idleLoops(t *testing.T, n int) *Loops {
	t.Helper()
	all := &Loops{}
	all.used.Store(1)
	for range n {
		p, err := newPoller()
		require.NoError(t, err)
		all.loops = append(all.loops, &loop{all: all, poller: p, term: 1, away: map[uint64]uint64{}})
	}
	t.Cleanup(all.closePollers)
	return all
}

// A client that does not take its reply keeps nobody from being answered whose reply has waited
// too, be it for the disk or for other servers.
func TestALateReplyWaitsForNoOtherClient(t *testing.T) {
	for name, send := range map[string]func(l *loop, conns []*Conn){
		"other servers": func(_ *loop, conns []*Conn) { settleEach(conns) },
		"the disk": func(l *loop, conns []*Conn) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.unsynced = conns
			l.settle()
		},
	} {
		t.Run(name, func(t *testing.T) {
			loops := idleLoops(t, 1)
			deaf, socket, _ := bareConn(t, loops)
			next, _, client := bareConn(t, loops)
			ended, rests := make(chan struct{}), make(chan error, 2)
			deaf.RestIn(func() { defer close(ended); _ = deaf.WaitByte() })
			next.RestIn(func() { rests <- next.WaitByte() })
			deaf.takeBuffers()
			deaf.Out = bytes.Repeat([]byte{'x'}, 64<<20)
			next.takeBuffers()
			next.Out = append(next.Out, "ok"...)
			send(loops.loops[0], []*Conn{deaf, next})
			_, err := client.Read(make([]byte, 2))
			require.NoError(t, err)
			require.ErrorIs(t, <-rests, ErrRests) // behind its reply
			require.ErrorIs(t, <-rests, ErrRests) // after a look at what has come meanwhile
			socket.Cut()
			deaf.Cut()
			<-ended
			loops.work.Wait()
			require.False(t, loops.loops[0].settling)
		})
	}
}

// One settler sends the replies that wait while it is at work, and ends when none is left.
func TestASettlerSendsWhatComesMeanwhile(t *testing.T) {
	loops := idleLoops(t, 1)
	l := loops.loops[0]
	const clients = 20
	var served []*settler // by one goroutine after the other
	settle := func(c *Conn) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.unsynced = append(l.unsynced, c); !l.settling {
			l.settle()
		}
	}
	var conns []*Conn
	for i := range clients {
		c, _, _ := bareConn(t, loops)
		conns = append(conns, c)
		c.RestIn(func() {
			served = append(served, c.settler)
			if i+1 < clients {
				settle(conns[i+1])
			}
		})
	}
	settle(conns[0])
	loops.work.Wait()
	require.Len(t, served, clients)
	for _, s := range served {
		require.Same(t, served[0], s)
	}
	require.False(t, l.settling)
	require.Empty(t, l.unsynced)
}

// A connection may end while its reply is sent, and its end may take long: nobody waits for that.
func TestAnEndKeepsNobodyFromAReply(t *testing.T) {
	loops := idleLoops(t, 1)
	l := loops.loops[0]
	ends, _, _ := bareConn(t, loops)
	next, _, _ := bareConn(t, loops)
	served := make(chan struct{})
	ends.RestIn(func() {
		if ends.WaitByte() == ErrStopped {
			<-served
		}
	})
	next.RestIn(func() { close(served) })
	require.NoError(t, ends.Stop(time.Minute))
	l.mu.Lock()
	l.unsynced = []*Conn{ends, next}
	l.settle()
	l.mu.Unlock()
	select {
	case <-served:
	case <-time.After(20 * time.Second):
		t.Error("the reply of another connection waits")
		close(served)
	}
	loops.work.Wait()
}

// A settler waits for one log.
func TestASettlerHasOneLog(t *testing.T) {
	l := idleLoops(t, 1).loops[0]
	a, b := new(int), new(int)
	require.True(t, l.shares(a))
	l.unsynced = append(l.unsynced, nil)
	require.True(t, l.shares(a))
	require.False(t, l.shares(b))
	l.unsynced, l.settling = nil, true
	require.False(t, l.shares(b))
	l.settling = false
	require.True(t, l.shares(b))
	require.True(t, l.shares(a), "nothing waits yet")
}

// The term of a leader says nothing in another loop: there the same number is somebody else's.
func TestAConnectionThatMovesHasNoLeader(t *testing.T) {
	loops := idleLoops(t, 2)
	c, _, _ := bareConn(t, loops)
	loops.next.Store(2)
	c.RestIn(func() {})
	c.term = 1
	require.NoError(t, c.watch())
	require.EqualValues(t, 1, c.term)
	loops.Use(2)
	require.NoError(t, c.watch())
	require.Same(t, loops.loops[1], c.loop)
	require.False(t, c.loop.queue(c, &c.loop.later), "its leader sleeps")
}

// A round that has begun is work: watch must not rest before its connections are served.
func TestARoundThatBeginsIsWork(t *testing.T) {
	l := idleLoops(t, 1).loops[0]
	require.False(t, l.look())
	l.ready = append(l.ready, new(Conn))
	require.True(t, l.look())
	l.served = 1
	l.owing = append(l.owing, new(Conn))
	require.True(t, l.look())
	l.settled = 1
	require.False(t, l.look())
}

// Stop leaves the socket to its owner, who may be about to have the connection rest.
func TestStopBeforeTheFirstRest(t *testing.T) {
	c, bare, _ := bareConn(t, idleLoops(t, 1))
	require.NoError(t, c.Stop(time.Minute))
	require.Nil(t, bare.tcp)
	c.RestIn(func() {})
	require.ErrorIs(t, c.WaitByte(), ErrStopped)
}
