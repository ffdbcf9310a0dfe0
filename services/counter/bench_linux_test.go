package counter_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/netio"
	"gotycoon/services"
	"gotycoon/services/counter"
)

const (
	peerVariable   = "GOTYCOON_BENCH_PEER"           // "1" lets the comparison run
	serverVariable = "GOTYCOON_COUNTER_BENCH_SERVER" // makes this binary a server
)

// serveForBenchmark is the server's process: it prints its address and ends with its standard
// input.
func serveForBenchmark() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	loops := netio.NewLoops(1)
	defer loops.Close()
	s := counter.New(counter.Options{Options: services.Options{Loops: loops}})
	s.Start(l)
	fmt.Println(l.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Close()
}

// startOurs runs the server in a process of its own.
func startOurs(tb testing.TB) (addr string, pid int) {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverVariable+"=1")
	in, err := cmd.StdinPipe()
	require.NoError(tb, err)
	out, err := cmd.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, cmd.Start())
	tb.Cleanup(func() {
		in.Close()
		require.NoError(tb, cmd.Wait())
	})
	_, err = fmt.Fscanln(out, &addr)
	require.NoError(tb, err)
	return addr, cmd.Process.Pid
}

// BenchmarkPeer compares acquire and release with yrmcds, in turns, from one generator:
//
//	GOTYCOON_BENCH_PEER=1 go test -run '^$' -bench Peer -benchtime 1x ./counter
func BenchmarkPeer(b *testing.B) {
	if os.Getenv(peerVariable) == "" {
		b.Skip("set " + peerVariable + "=1 to compare with yrmcds")
	}
	own := func(conn int) string { return fmt.Sprintf("resource-%d", conn) }
	hot := func(int) string { return "resource" }
	for _, row := range []struct {
		name  string
		depth int
		names func(int) string
	}{
		{"a counter each", 1, own}, {"one counter", 1, hot}, {"a counter each, 16 pairs pipelined", 16, own},
	} {
		b.Run(row.name, func(b *testing.B) { comparePeer(b, row.depth, row.names) })
	}
}

func comparePeer(b *testing.B, depth int, names func(int) string) {
	const rounds, length = 3, 2 * time.Second
	var peers [2]measured
	peers[0].addr, peers[0].pid = startOurs(b)
	peers[1].addr, peers[1].pid = startYrmcds(b)
	for range rounds * b.N {
		for i := range peers {
			peers[i].take(b, depth, names, length)
		}
	}
	ours, theirs := &peers[0], &peers[1]
	b.ReportMetric(ours.perSecond(), "requests/s")
	b.ReportMetric(theirs.perSecond(), "yrmcds-requests/s")
	b.ReportMetric(ours.perSecond()/theirs.perSecond(), "ratio")
	b.ReportMetric(ours.cpuEach(), "cpu-ns/request")
	b.ReportMetric(theirs.cpuEach(), "yrmcds-cpu-ns/request")
	b.ReportMetric(0, "ns/op")
}

// measured is a server and what was measured of it.
type measured struct {
	addr     string
	pid      int
	requests float64
	time     time.Duration
	cpu      time.Duration
}

// take puts a load on the server for a while, after some warming up.
func (m *measured) take(b *testing.B, depth int, names func(int) string, length time.Duration) {
	l := &load{conns: 64, depth: depth, name: names}
	defer l.disconnect()
	l.connect(b, m.addr)
	l.run(b, length/10)
	before := cpuTime(b, m.pid)
	m.requests += l.run(b, length) * length.Seconds()
	m.cpu += cpuTime(b, m.pid) - before
	m.time += length
}

func (m *measured) perSecond() float64 { return m.requests / m.time.Seconds() }
func (m *measured) cpuEach() float64   { return float64(m.cpu) / m.requests }

// cpuTime is the processor time that a process has used.
func cpuTime(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(tb, err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const utime, stime, perSecond = 11, 12, 100 // counted from the state; USER_HZ
	ticks := 0
	for _, i := range []int{utime, stime} {
		n, err := strconv.Atoi(fields[i])
		require.NoError(tb, err)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / perSecond
}
