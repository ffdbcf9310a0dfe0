package memcache

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
)

const (
	benchConns = 64
	benchKeys  = 100_000
	benchValue = 100
)

// BenchmarkCommands measures set and get at 64 connections, each waiting for its reply. It measures
// ktserver and, if installed, memcached in turns:
//
//	go test ./memcache -run - -bench Commands -benchtime 200000x
func BenchmarkCommands(b *testing.B) {
	other := startMemcached(b)
	for _, row := range []struct{ name, addr string }{{"ours", startServer(b, ":")}, {"memcached", other}} {
		if row.addr == "" {
			continue
		}
		b.Run("set/"+row.name, func(b *testing.B) {
			value := bytes.Repeat([]byte("v"), benchValue)
			runConns(b, row.addr, func(c *bufio.ReadWriter, i int) error {
				fmt.Fprintf(c, "set key-%08d 0 0 %d\r\n%s\r\n", i%benchKeys, benchValue, value)
				return expectLines(c, 1)
			})
		})
		b.Run("get/"+row.name, func(b *testing.B) {
			runConns(b, row.addr, func(c *bufio.ReadWriter, i int) error {
				fmt.Fprintf(c, "get key-%08d\r\n", i%benchKeys)
				return expectLines(c, 3)
			})
		})
	}
}

// BenchmarkQueue measures messages per second from set to delete. Half of the connections produce,
// and half consume.
func BenchmarkQueue(b *testing.B) {
	for _, expr := range []string{"%", "file"} {
		b.Run(expr, func(b *testing.B) {
			path := expr
			if expr == "file" {
				path = b.TempDir() + "/queue.kct#ktopts=p"
			}
			addr := startServer(b, path, "-memcache-opts", "fq", "-memcache-qtout", "1")
			var wg sync.WaitGroup
			wg.Go(func() {
				runConns(nil, addr, func(c *bufio.ReadWriter, i int) error {
					fmt.Fprintf(c, "set job 0 0 %d\r\n%0100d\r\n", benchValue, i)
					return expectLines(c, 1)
				}, b.N)
			})
			runConns(b, addr, func(c *bufio.ReadWriter, _ int) error {
				fmt.Fprint(c, "get job\r\n")
				if err := expectLines(c, 3); err != nil {
					return err
				}
				fmt.Fprint(c, "delete job\r\n")
				return expectLines(c, 1)
			})
			wg.Wait()
		})
	}
}

// runConns makes requests on many connections, b.N or n in all.
func runConns(b *testing.B, addr string, request func(c *bufio.ReadWriter, i int) error, n ...int) {
	total := 0
	if b != nil {
		total = b.N
	} else {
		total = n[0]
	}
	var conns sync.WaitGroup
	begun := time.Now()
	for id := range benchConns {
		conns.Go(func() {
			socket, err := net.Dial("tcp4", addr)
			if err != nil {
				panic(err)
			}
			defer socket.Close()
			c := bufio.NewReadWriter(bufio.NewReader(socket), bufio.NewWriter(socket))
			for i := id; i < total; i += benchConns {
				if err := request(c, i); err != nil {
					panic(err)
				}
			}
		})
	}
	conns.Wait()
	if b != nil {
		b.ReportMetric(float64(total)/time.Since(begun).Seconds(), "req/s")
	}
}

// expectLines sends what is buffered and reads so many lines.
func expectLines(c *bufio.ReadWriter, n int) error {
	if err := c.Flush(); err != nil {
		return err
	}
	for i := range n {
		line, err := c.ReadSlice('\n')
		if err != nil {
			return err
		}
		if i == 0 && n > 1 && !bytes.HasPrefix(line, []byte("VALUE")) {
			if bytes.HasPrefix(line, []byte("END")) {
				return nil
			}
			return fmt.Errorf("%q: %w", line, io.ErrUnexpectedEOF)
		}
	}
	return nil
}

// startServer starts ktserver as a process of its own.
func startServer(b *testing.B, expr string, args ...string) string {
	port := strconv.Itoa(freeport.Take(b))
	args = append(args, "-ls", "-memcache-port", port)
	ktproc.Start(b, ktproc.Options{Bin: ktproc.Build(b, "ktserver"), Dir: b.TempDir(), Args: args, DBs: []string{expr}})
	addr := net.JoinHostPort("127.0.0.1", port)
	awaitServer(b, addr)
	return addr
}

// startMemcached starts the memcached of the system, and returns "" when there is none.
func startMemcached(b *testing.B) string {
	bin, err := exec.LookPath("memcached")
	if err != nil {
		b.Log("memcached is not installed: measured alone")
		return ""
	}
	port := freeport.Take(b)
	args := []string{"-p", strconv.Itoa(port), "-l", "127.0.0.1", "-U", "0", "-m", "512"}
	if me, err := user.Current(); err == nil && me.Uid == "0" {
		args = append(args, "-u", "nobody")
	}
	cmd := exec.Command(bin, args...)
	cmd.Stderr = os.Stderr
	require.NoError(b, cmd.Start())
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	awaitServer(b, addr)
	return addr
}

func awaitServer(b *testing.B, addr string) {
	require.Eventually(b, func() bool {
		c, err := net.Dial("tcp4", addr)
		if err != nil {
			return false
		}
		c.Close()
		return true
	}, patience, 10*time.Millisecond)
}
