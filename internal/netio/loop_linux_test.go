package netio_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/netio"
	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
	"gotycoon/ulog"
)

const patience = time.Minute

// loopServer answers lines on connections that rest in loops.
type loopServer struct {
	t       *testing.T
	loops   *netio.Loops
	limits  *netio.Limits
	addr    string
	answer  func(c *netio.Conn, line string)
	open    sync.WaitGroup
	ends    chan error // why connections have ended
	last    atomic.Pointer[netio.Conn]
	resumed atomic.Int64
}

func startLoops(t *testing.T, n int, answer func(c *netio.Conn, line string)) *loopServer {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	bare := netio.ListenBare(ln.(*net.TCPListener))
	s := &loopServer{
		t: t, loops: netio.NewLoops(n), limits: &netio.Limits{}, addr: ln.Addr().String(), answer: answer, ends: make(chan error, 1000),
	}
	require.NotNil(t, s.loops)
	s.limits.SetTimeout(patience)
	pool := netio.NewPool()
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			socket, err := bare.Accept()
			if err != nil {
				return
			}
			s.open.Add(1)
			go s.serve(socket, pool)
		}
	})
	t.Cleanup(func() {
		bare.Close()
		accepting.Wait()
		s.open.Wait()
		s.loops.Close()
	})
	return s
}

func (s *loopServer) serve(socket net.Conn, pool *sync.Pool) {
	c := netio.New(socket, pool, netio.Options{Limits: s.limits, Loops: s.loops, MaxRequest: 64 << 20})
	s.last.Store(c)
	resume := func() {
		s.resumed.Add(1)
		for {
			err := c.WaitByte()
			if errors.Is(err, netio.ErrRests) {
				return
			}
			if err == nil {
				err = s.one(c)
			}
			if err != nil {
				c.Close()
				socket.Close()
				s.ends <- err
				s.open.Done()
				return
			}
		}
	}
	c.RestIn(resume)
	resume()
}

// one serves a line.
func (s *loopServer) one(c *netio.Conn) error {
	for {
		if end := bytes.IndexByte(c.Buffered(), '\n'); end >= 0 {
			line := string(c.Buffered()[:end])
			c.Advance(end + 1)
			s.answer(c, line)
			return nil
		}
		if err := c.Fill(); err != nil {
			return err
		}
	}
}

type lineClient struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

func (s *loopServer) dial() *lineClient {
	s.t.Helper()
	c, err := net.Dial("tcp4", s.addr)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	require.NoError(s.t, c.SetDeadline(time.Now().Add(patience)))
	return &lineClient{c, s.t, bufio.NewReader(c)}
}

func (c *lineClient) send(text string) {
	c.t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(c.t, err)
}

func (c *lineClient) expect(line string) {
	c.t.Helper()
	got, err := c.in.ReadString('\n')
	require.NoError(c.t, err)
	require.Equal(c.t, line+"\n", got)
}

func (c *lineClient) ask(line string) {
	c.t.Helper()
	c.send(line + "\n")
	c.expect("re " + line)
}

func say(c *netio.Conn, line string) { c.Out = append(append(append(c.Out, "re "...), line...), '\n') }

// Requests come whole, in halves, many at once and larger than a buffer, and each gets its answer.
func TestLoopsServeRequests(t *testing.T) {
	s := startLoops(t, 2, say)
	s.loops.Use(2)
	var all sync.WaitGroup
	for k := range 20 {
		all.Go(func() {
			c := s.dial()
			for n := range 50 {
				c.ask(fmt.Sprintf("%d of %d", n, k))
			}
			var many, answers bytes.Buffer
			for n := range 3000 {
				fmt.Fprintf(&many, "many %d\n", n)
				fmt.Fprintf(&answers, "re many %d\n", n)
			}
			all.Go(func() { c.send(many.String()) })
			got := make([]byte, answers.Len())
			_, err := io.ReadFull(c.in, got)
			require.NoError(t, err)
			require.Equal(t, answers.String(), string(got))
			c.send("ha")
			c.send("lf\n")
			c.expect("re half")
			c.ask("again")
			large := string(bytes.Repeat([]byte{'x'}, 3<<20))
			all.Go(func() { c.send(large + "\n") })
			c.expect("re " + large)
			c.ask("last")
		})
	}
	all.Wait()
}

// A request that waits keeps nobody else from being served, whether it says so or not, and however
// many wait at the same time.
func TestNobodyWaitsForWhoWaits(t *testing.T) {
	for _, says := range []bool{true, false} {
		t.Run(fmt.Sprint(says), func(t *testing.T) {
			release := make(chan struct{})
			s := startLoops(t, 1, func(c *netio.Conn, line string) {
				if line == "wait" {
					if says {
						c.Leave()
					}
					<-release
				}
				say(c, line)
			})
			c := s.dial()
			var waiting []*lineClient
			for range 40 {
				w := s.dial()
				w.send("wait\n")
				waiting = append(waiting, w)
				c.ask("meanwhile")
			}
			close(release)
			for _, w := range waiting {
				w.expect("re wait")
				w.ask("afterwards")
			}
		})
	}
}

// A client with half a request, or one that takes no reply, keeps only itself from being served.
func TestNobodyWaitsForSlowClients(t *testing.T) {
	large := string(bytes.Repeat([]byte{'x'}, 8<<20))
	s := startLoops(t, 1, func(c *netio.Conn, line string) {
		if line == "large" {
			line = large
		}
		say(c, line)
	})
	half, deaf, c := s.dial(), s.dial(), s.dial()
	half.send("ha")
	deaf.send("large\n")
	for range 10 {
		c.ask("meanwhile")
	}
	half.send("lf\n")
	half.expect("re half")
	deaf.expect("re " + large)
	deaf.ask("afterwards")
}

// A client that never stops sending gets its turn, and no more.
func TestEndlessRequestsLeaveOthersTheirTurn(t *testing.T) {
	s := startLoops(t, 1, say)
	endless := s.dial()
	block := bytes.Repeat([]byte("x\n"), 64<<10)
	var sending sync.WaitGroup
	sending.Go(func() { _, _ = io.Copy(io.Discard, endless.Conn) })
	sending.Go(func() {
		for {
			if _, err := endless.Conn.Write(block); err != nil {
				return
			}
		}
	})
	c := s.dial()
	for n := range 200 {
		c.ask(fmt.Sprint(n))
	}
	endless.Close()
	sending.Wait()
}

// The end of the stream is noticed wherever it comes: with the last request, behind it, and without
// any.
func TestLoopsNoticeTheEnd(t *testing.T) {
	s := startLoops(t, 1, say)
	with := s.dial()
	with.send("x\n")
	require.NoError(t, with.Conn.(*net.TCPConn).CloseWrite())
	with.expect("re x")
	require.ErrorIs(t, <-s.ends, io.EOF)

	behind := s.dial()
	behind.ask("x")
	behind.Close()
	require.ErrorIs(t, <-s.ends, io.EOF)

	s.dial().Close()
	require.ErrorIs(t, <-s.ends, io.EOF)

	reset := s.dial()
	reset.ask("x")
	require.NoError(t, reset.Conn.(*net.TCPConn).SetLinger(0))
	reset.Close()
	require.Error(t, <-s.ends)
}

// Stop ends a connection that rests at once, and one that is being served behind its reply.
func TestStopEndsRests(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	s := startLoops(t, 1, func(c *netio.Conn, line string) {
		if line == "wait" {
			close(begun)
			<-release
		}
		say(c, line)
	})
	c := s.dial()
	c.ask("x")
	require.NoError(t, s.last.Load().Stop(time.Minute))
	require.ErrorIs(t, <-s.ends, netio.ErrStopped)

	c = s.dial()
	c.send("wait\n")
	<-begun
	require.NoError(t, s.last.Load().Stop(time.Minute))
	close(release)
	c.expect("re wait")
	require.ErrorIs(t, <-s.ends, netio.ErrStopped)
}

// Cut ends a connection whatever it does: it rests, waits for bytes, or for room for its reply.
func TestCutEndsRests(t *testing.T) {
	large := string(bytes.Repeat([]byte{'x'}, 8<<20))
	s := startLoops(t, 1, func(c *netio.Conn, line string) {
		if line == "large" {
			line = large
		}
		say(c, line)
	})
	for _, sent := range []string{"", "ha", "large\n"} {
		c := s.dial()
		c.ask("x")
		c.send(sent)
		served := s.last.Load()
		for range 10 {
			s.dial().ask("others")
		}
		served.Cut()
		require.Error(t, <-s.ends)
		_, err := io.Copy(io.Discard, c.in)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	}
}

// A connection that rests for too long is closed, and no other. The limit begins while its request is
// answered: one that began before could end it on a slow machine before it has asked.
func TestRestsHaveALimit(t *testing.T) {
	var limits atomic.Pointer[netio.Limits]
	s := startLoops(t, 1, func(c *netio.Conn, line string) {
		if line == "limit" {
			limits.Load().SetIdle(time.Millisecond)
		}
		say(c, line)
	})
	limits.Store(s.limits)
	unlimited := s.dial()
	unlimited.ask("x")
	require.Eventually(t, s.last.Load().Parked, patience, time.Millisecond)
	s.dial().ask("limit")
	require.ErrorIs(t, <-s.ends, os.ErrDeadlineExceeded)
	s.limits.SetIdle(0)
	unlimited.ask("y")
}

// While the log waits for its disk, nobody who has updated anything is answered, and everybody else
// is. Updates that come meanwhile are answered as well when the disk is back.
func TestReadersDoNotWaitForTheDisk(t *testing.T) {
	for _, each := range []bool{false, true} {
		t.Run(fmt.Sprintf("SyncEach=%v", each), func(t *testing.T) {
			fs := faultfs.New(vfs.OS{})
			log, err := ulog.Open(t.TempDir(), ulog.Options{SyncEach: each, FS: fs})
			require.NoError(t, err)
			defer log.Close()
			begun, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			hang := func() { once.Do(func() { close(begun) }); <-release }
			if each {
				fs.OnSync(hang)
			} else {
				fs.OnWrite(hang)
			}
			s := startLoops(t, 1, func(c *netio.Conn, line string) {
				if line == "set" {
					at, _ := log.Append([]ulog.Update{{Op: ulog.OpSet, Key: []byte("k")}})
					c.Owed.Add(log, at, 0, -1)
				}
				say(c, line)
			})
			reader := s.dial()
			var writers []*lineClient
			set := func() {
				w := s.dial()
				w.send("set\n")
				writers = append(writers, w)
			}
			set()
			<-begun
			for range 20 {
				set()
				reader.ask("meanwhile")
			}
			for _, w := range writers {
				require.NoError(t, w.SetReadDeadline(time.Unix(1, 0)))
				_, err := w.in.Peek(1)
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				require.NoError(t, w.SetReadDeadline(time.Now().Add(patience)))
			}
			close(release)
			for _, w := range writers {
				w.expect("re set")
				w.ask("set")
			}
		})
	}
}

// Connections follow when the number of loops changes, under load.
func TestConnectionsMoveBetweenLoops(t *testing.T) {
	s := startLoops(t, 4, say)
	var asking sync.WaitGroup
	var over atomic.Bool
	for range 8 {
		asking.Go(func() {
			c := s.dial()
			for n := 0; !over.Load(); n++ {
				c.ask(fmt.Sprint(n))
			}
		})
	}
	from := s.resumed.Load()
	for n := range 200 {
		s.loops.Use(n%4 + 1)
		for s.resumed.Load() < from+int64(n) {
			s.dial().ask("x")
		}
	}
	over.Store(true)
	asking.Wait()
}

// A connection that has to wait in a goroutine becomes one of package net, and is served on.
func TestABareConnectionIsOneOfNet(t *testing.T) {
	s := startLoops(t, 1, func(c *netio.Conn, line string) {
		require.NoError(t, c.Settle())
		say(c, line)
	})
	c := s.dial()
	c.ask("x")
	c.ask("y")
	c.send("z")
	c.Close()
	require.Error(t, <-s.ends)
}
