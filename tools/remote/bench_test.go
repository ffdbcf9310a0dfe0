package remote_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
	"gotycoon/internal/klog"
	"gotycoon/server"
)

// benchAt runs bench for a moment on the ordered database of the tests.
func benchAt(t *testing.T, args ...string) result {
	t.Helper()
	return command(t, "", at("bench", append([]string{"-time", "0.05", "-keys", "50", "-bulk", "5", "-conns", "3"}, args...)...)...)
}

func TestBenchMeasuresAndCleansUp(t *testing.T) {
	for _, row := range []struct{ protocol, db, mix string }{
		{"rest", "tree", "set,get,increment,setbulk,getbulk"},
		{"rpc", "tree", "set,get,increment,setbulk,getbulk"},
		{"binary", "1", "set,get,setbulk,getbulk"},
	} {
		clear(t)
		r := benchAt(t, "-time", "1", "-protocol", row.protocol, "-db", row.db, "-mix", row.mix, "-size", "0-20", "-keyed", "zipf", "-json")
		require.Zero(t, r.exit, r.stderr)
		require.Empty(t, r.stderr)
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		require.Len(t, lines, strings.Count(row.mix, ",")+2)
		for i, line := range lines {
			var o struct {
				Operation        string
				Requests         int
				Missing, Refused int
				P50_ms, Max_ms   float64
			}
			require.NoError(t, json.Unmarshal([]byte(line), &o))
			require.Equal(t, append(strings.Split(row.mix, ","), "all")[i], o.Operation)
			require.Positive(t, o.Requests, line)
			require.Zero(t, o.Missing+o.Refused, line)
			require.Greater(t, o.P50_ms, 0.0)
			require.GreaterOrEqual(t, o.Max_ms, o.P50_ms)
		}
		require.Contains(t, succeed(t, "", "inform", "-db", "tree"), "count: 0\n", "everything was removed")
	}
}

func TestBenchComparesTwoServers(t *testing.T) {
	clear(t)
	r := benchAt(t, "-against", "127.0.0.1:"+port, "-turns", "2", "-rate", "2000", "-mix", "set=1", "-force")
	require.Zero(t, r.exit, r.stderr)
	want := fmt.Sprintf(`^rest, 3 connections, 50 keys \(uniform\), values of 100 bytes, set=1, 2000 requests/s, waits from when they were due
 +operation +server +requests +per second +p50 ms +p90 ms +p99 ms +p99\.9 ms +max ms
 +set +localhost:%s +100 +\d+( +[\d.]+){5}
 +set +127\.0\.0\.1:%[1]s +100 +\d+( +[\d.]+){5}
 +set +ratio +\d\.\d\d( +\d+\.\d\d){5}
`, port)
	require.Regexp(t, want, r.stdout)
	require.Contains(t, succeed(t, "", "inform"), "count: 0\n")
}

func TestBenchLeavesRecordsAlone(t *testing.T) {
	clear(t)
	succeed(t, "", "set", "mine", "v")
	r := benchAt(t)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "localhost:"+port+" has 1 records: measure a server of its own, or give -force")
	require.Zero(t, benchAt(t, "-force").exit)
	require.Equal(t, "mine\tv\n", succeed(t, "", "list", "-pv"))
}

func TestBenchRefuses(t *testing.T) {
	clear(t)
	for want, args := range map[string][]string{
		"-mix: \"put\" is no operation":           {"-mix", "put"},
		"-size: must be a number":                 {"-size", "x"},
		"there is no protocol \"redis\"":          {"-protocol", "redis"},
		"-against: must be HOST:PORT":             {"-against", "nobody"},
		"the protocol binary has no increments":   {"-protocol", "binary", "-mix", "increment"},
		"1 to 10000 connections (-conns)":         {"-conns", "0"},
		"-keys: must be 1 to 1000000000":          {"-keys", "0"},
		"-turns: must be at least 1":              {"-turns", "0", "-against", "127.0.0.1:1"},
		"-turns: is for -against":                 {"-turns", "2"},
		"the rate must be 0 to 1000000000":        {"-rate", "-1"},
		"the time must be more than 0 (-time)":    {"-time", "0"},
		"the smaller size stands first (-size)":   {"-size", "9-1"},
		"2: invalid operation: no such database":  {"-db", "none"},
		"127.0.0.1:1: 6: network error: dial tcp": {"-against", "127.0.0.1:1"},
	} {
		r := benchAt(t, args...)
		require.Equal(t, 1, r.exit, args)
		require.Contains(t, r.stderr, want)
	}
}

// withMemcached starts a server for memcached's clients and returns its two ports.
func withMemcached(t *testing.T) (data, memcached string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	listening, ended := make(chan net.Addr, 1), make(chan int, 1)
	cfg := server.DefaultConfig()
	cfg.Databases, cfg.Port, cfg.LogLevel = []string{":"}, 0, klog.LevelSilent
	cfg.Plugins.MemcachePort, cfg.Plugins.MemcacheOptions = freeport.Take(t), "fm"
	cfg.Listening = func(a net.Addr) { listening <- a }
	go func() { ended <- server.Run(ctx, cfg, io.Discard, io.Discard) }()
	t.Cleanup(func() {
		cancel()
		require.Zero(t, <-ended)
	})
	_, data, err := net.SplitHostPort((<-listening).String())
	require.NoError(t, err)
	return data, strconv.Itoa(cfg.Plugins.MemcachePort)
}

func TestBenchOverMemcached(t *testing.T) {
	data, memcached := withMemcached(t)
	args := []string{"bench", "-port", memcached, "-protocol", "memcached", "-time", "1", "-keys", "50", "-bulk", "5", "-mix", "set,get,increment,setbulk,getbulk", "-json"}
	r := command(t, "", args...)
	require.Zero(t, r.exit, r.stderr)
	require.Equal(t, 6, strings.Count(r.stdout, `"missing":0,`))
	require.Equal(t, 6, strings.Count(r.stdout, `"refused":0,`), r.stdout)
	require.Contains(t, command(t, "", "inform", "-port", data).stdout, "count: 0\n")
	require.Zero(t, command(t, "", "set", "-port", data, "k", "v").exit)
	require.Contains(t, command(t, "", args...).stderr, "localhost:"+memcached+" has 1 records")
}

// Every key of a get counts, in each of memcached's forms.
func TestHotKeysOfMemcached(t *testing.T) {
	data, memcached := withMemcached(t)
	c, err := net.Dial("tcp", "127.0.0.1:"+memcached)
	require.NoError(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	request := func(int) {
		_, err := io.WriteString(c, "get x y\r\ngat 0 x\r\nset x 0 0 1\r\nv\r\n")
		require.NoError(t, err)
		for line := ""; line != "STORED\r\n"; {
			line, err = in.ReadString('\n')
			require.NoError(t, err)
		}
	}
	request(0)
	text := watching(t, request, "hotkeys", "-port", data, "-time", "2", "-protocol", "memcached")
	var x, y int
	_, err = fmt.Sscanf(text, "%d\t:\tx\n%d\t:\ty\n", &x, &y)
	require.NoError(t, err, text)
	require.InDelta(t, 3*y, x, 3, "one request may be cut by the beginning or the end")
}

// A server that stops within the load leaves records behind: the error names their prefix. The
// connections before the load are those that ask for the number of records and store them.
func TestBenchNamesWhatItLeaves(t *testing.T) {
	l, err := net.Listen("tcp4", freeport.Addr(t))
	require.NoError(t, err)
	go func() {
		for range 2 {
			c, err := l.Accept()
			if err != nil {
				return
			}
			relayOne(c, func(_ int, p []byte) ([]byte, bool) { return p, true })
		}
		if c, err := l.Accept(); err == nil {
			_ = l.Close() // first: what comes next is refused
			_ = c.Close()
		}
	}()
	_, flaky, _ := net.SplitHostPort(l.Addr().String())
	r := command(t, "", "bench", "-host", "127.0.0.1", "-port", flaky, "-time", "5", "-keys", "50", "-conns", "1", "-force")
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, `removing the records whose keys begin with "bench-`)
	require.Contains(t, r.stderr, "connection refused")
	clear(t)
}
