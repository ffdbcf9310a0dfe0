package servicetest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/services"
)

const (
	childDir   = "COCONUT_TEST_DIR"   // makes the test binary a server of that directory's database
	childClock = "COCONUT_TEST_CLOCK" // by how many seconds its clock is wrong
)

// Main runs the tests of a package. In the processes that StartChild starts, it serves a service in
// the directory of its argument instead, with a clock that is wrong by so much, until the process
// is killed.
func Main(m *testing.M, open func(dir string, wrong time.Duration) (services.Service, error)) {
	if dir := os.Getenv(childDir); dir != "" {
		panic(serveChild(dir, open))
	}
	goleak.VerifyTestMain(m)
}

// serveChild tells the address of the service on standard output.
func serveChild(dir string, open func(dir string, wrong time.Duration) (services.Service, error)) error {
	wrong, _ := strconv.Atoi(os.Getenv(childClock))
	s, err := open(dir, time.Duration(wrong)*time.Second)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.Start(l)
	fmt.Println(l.Addr())
	select {}
}

// Child is such a process.
type Child struct {
	cmd  *exec.Cmd
	Addr string // of its service
}

// StartChild starts a process whose clock is wrong by so many seconds.
func StartChild(t *testing.T, dir string, wrong int) *Child {
	t.Helper()
	c := &Child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childDir+"="+dir, childClock+"="+strconv.Itoa(wrong))
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(c.Kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	c.Addr = strings.TrimSpace(line)
	return c
}

// Kill ends the process.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill() // it may be dead already
	_ = c.cmd.Wait()
}

// Kills returns how often to kill, and by how much more there is to do than in a quick run.
func Kills(t *testing.T, quick, full int) (n, scale int) {
	if wanted, err := strconv.Atoi(os.Getenv("GOTYCOON_CRASH")); err == nil && wanted > 0 {
		return full, 27
	}
	return quick, 1
}

// Caller makes calls on a connection of its own if need be. ok is false when the server is gone.
type Caller struct {
	socket net.Conn
	reader *bufio.Reader
}

// Call makes a call.
func (c *Caller) Call(addr, path string) (body string, ok bool) {
	if c.socket == nil {
		socket, err := net.Dial("tcp", addr)
		if err != nil {
			return "", false
		}
		c.socket, c.reader = socket, bufio.NewReader(socket)
	}
	body, err := c.try(path)
	if err != nil {
		c.socket.Close()
		c.socket = nil
	}
	return body, err == nil
}

func (c *Caller) try(path string) (string, error) {
	if _, err := io.WriteString(c.socket, "GET "+path+" HTTP/1.1\r\n\r\n"); err != nil {
		return "", err
	}
	var size int
	for line := "x"; line != ""; {
		text, err := c.reader.ReadString('\n')
		if err != nil {
			return "", err
		}
		line = strings.TrimSpace(text)
		if value, ok := strings.CutPrefix(line, "Content-length: "); ok {
			if size, err = strconv.Atoi(value); err != nil {
				return "", err
			}
		}
	}
	text := make([]byte, size)
	_, err := io.ReadFull(c.reader, text)
	return string(text), err
}

// Close ends the connection.
func (c *Caller) Close() {
	if c.socket != nil {
		c.socket.Close()
	}
}

// KillAfter kills the server when only so much is left.
func KillAfter(left *atomic.Int64, at int64, server *Child) {
	for left.Load() > at {
		runtime.Gosched()
	}
	server.Kill()
}
