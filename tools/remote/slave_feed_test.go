package remote_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/tools/remote"
)

// background runs the tool until stop is called, which returns its exit code.
func background(t *testing.T, args ...string) (stdout, stderr *output, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stdout, stderr = new(output), new(output)
	ended := make(chan int, 1)
	go func() { ended <- remote.Main(ctx, args, strings.NewReader(""), stdout, stderr) }()
	return stdout, stderr, func() int { cancel(); return <-ended }
}

// logged is a server with an update log.
func logged(t *testing.T, bin, dir string, port int, more ...string) *ktproc.Server {
	t.Helper()
	args := append([]string{"-ulog", "ulog", "-sid", "1"}, more...)
	if port == 0 {
		return ktproc.Start(t, ktproc.Options{Bin: bin, Dir: dir, Args: args})
	}
	s := ktproc.Launch(t, ktproc.Options{Bin: bin, Dir: dir, Args: args}, port)
	require.Eventually(t, func() bool { return command(t, "", "report", "-port", strconv.Itoa(port)).exit == 0 }, waitLimit,
		10*time.Millisecond, "does not listen again")
	return s
}

// fill stores records, one update each.
func fill(t *testing.T, port, prefix string, n int) {
	t.Helper()
	args := []string{"setbulk", "-port", port}
	for i := range n {
		args = append(args, fmt.Sprintf("%s%03d", prefix, i), "value")
	}
	require.Zero(t, command(t, "", args...).exit)
}

// awaitFollower waits until somebody follows the server's log.
func awaitFollower(t *testing.T, s *ktproc.Server) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.Output(), "a slave was connected") }, waitLimit, 10*time.Millisecond)
}

func awaitLines(t *testing.T, o *output, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Count(o.String(), "\n") >= n }, waitLimit, 10*time.Millisecond, "of %d lines", n)
}

// TestFeedSurvivesServers follows a server through kills: no line is lost, none comes twice.
func TestFeedSurvivesServers(t *testing.T) {
	bin, dir := serverBin(t), t.TempDir()
	s := logged(t, bin, dir, 0)
	port := strconv.Itoa(s.Port)
	stdout, stderr, stop := background(t, "slave", "-port", port, "-uw")
	awaitFollower(t, s)
	const rounds, each = 3, 200
	for i := range rounds {
		fill(t, port, fmt.Sprintf("round%d-", i), each)
		if i > 0 { // in the first round it is killed while it sends
			awaitLines(t, stdout, (i+1)*each)
		}
		s.Kill()
		s = logged(t, bin, dir, s.Port)
	}
	awaitLines(t, stdout, rounds*each)
	require.Zero(t, stop(), stderr.String())
	require.Equal(t, command(t, "", "slave", "-port", port).stdout, stdout.String())
	require.Contains(t, stderr.String(), "the connection has ended")
	s.Stop(t)
}

// TestFeedKeepsPosition prints every line once over several runs.
func TestFeedKeepsPosition(t *testing.T) {
	bin, dir := serverBin(t), t.TempDir()
	s := logged(t, bin, dir, 0)
	port, pos := strconv.Itoa(s.Port), filepath.Join(dir, "feed.pos")
	var all string
	for i := range 3 {
		fill(t, port, fmt.Sprintf("round%d-", i), 50)
		r := command(t, "", "slave", "-port", port, "-pos", pos)
		require.Zero(t, r.exit, r.stderr)
		require.Equal(t, 50, strings.Count(r.stdout, "\n"))
		all += r.stdout
	}
	require.Equal(t, command(t, "", "slave", "-port", port).stdout, all)

	lines := strings.Split(strings.TrimSpace(all), "\n")
	kept, err := os.ReadFile(pos)
	require.NoError(t, err)
	id, err := os.ReadFile(filepath.Join(dir, "ulog", "gotycoon.id"))
	require.NoError(t, err)
	last := firstColumn(lines[len(lines)-1])
	require.Equal(t, fmt.Sprintf("%020s\n%s", last, id), string(kept))

	require.NoError(t, os.WriteFile(pos, []byte("nonsense\n"), 0o644))
	r := command(t, "", "slave", "-port", port, "-pos", pos)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "no time stamp")
	s.Stop(t)
}

// TestFeedEndsInOrder saves the position when the process is asked to end.
func TestFeedEndsInOrder(t *testing.T) {
	dir := t.TempDir()
	s := logged(t, serverBin(t), dir, 0)
	port, pos := strconv.Itoa(s.Port), filepath.Join(dir, "feed.pos")
	var stdout, stderr output
	agent := exec.Command(os.Args[0], "slave", "-port", port, "-uw", "-pos", pos)
	agent.Env, agent.Stdout, agent.Stderr = append(os.Environ(), alone+"=1"), &stdout, &stderr
	require.NoError(t, agent.Start())
	awaitFollower(t, s)
	fill(t, port, "key", 3)
	awaitLines(t, &stdout, 3)
	require.NoError(t, agent.Process.Signal(syscall.SIGTERM))
	require.NoError(t, agent.Wait(), stderr.String())
	kept, err := os.ReadFile(pos)
	require.NoError(t, err)
	lines := strings.Split(stdout.String(), "\n")
	require.True(t, strings.HasPrefix(string(kept), "0"+firstColumn(lines[2])+"\n"), string(kept))
	s.Stop(t)
}

// TestFeedFindsGaps does not pass over what has been removed from the log.
func TestFeedFindsGaps(t *testing.T) {
	bin, dir := serverBin(t), t.TempDir()
	s := logged(t, bin, dir, 0, "-ulim", "1k")
	port, pos := strconv.Itoa(s.Port), filepath.Join(dir, "feed.pos")
	fill(t, port, "seen", 1)
	require.Zero(t, command(t, "", "slave", "-port", port, "-pos", pos).exit)
	require.Zero(t, command(t, "", "slave", "-port", port, "-ur").exit)
	r := command(t, "", "slave", "-port", port, "-pos", pos)
	require.Equal(t, result{}, r, "what was removed had been seen")

	for i := range 20 {
		fill(t, port, fmt.Sprintf("lost%d-", i), 20)
	}
	require.Zero(t, command(t, "", "slave", "-port", port, "-ur").exit)
	fill(t, port, "left", 1)
	for _, args := range [][]string{{"-pos", pos}, {"-uw", "-ts", "1"}} {
		r = command(t, "", append([]string{"slave", "-port", port}, args...)...)
		require.Equal(t, 1, r.exit)
		require.Empty(t, r.stdout)
		require.Contains(t, r.stderr, "no longer has everything after")
	}
	r = command(t, "", "slave", "-port", port, "-pos", pos, "-gap-continue")
	require.Zero(t, r.exit)
	require.Contains(t, r.stdout, "bGVmdDAwMA==")
	require.Contains(t, r.stderr, "warning")
	s.Stop(t)

	require.NoError(t, os.RemoveAll(filepath.Join(dir, "ulog")))
	s = logged(t, bin, dir, s.Port)
	r = command(t, "", "slave", "-port", port, "-pos", pos)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "another one")
	s.Stop(t)
}

// TestFeedNoticesSilence has a server fall silent on an open connection. The feed must leave it,
// and ask the next server for the updates behind the last one.
func TestFeedNoticesSilence(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	asked := make(chan uint64, 10)
	go serveSilently(l, asked)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	stdout, stderr, stop := background(t, "slave", "-host", "127.0.0.1", "-port", port, "-uw", "-tout", "2")
	for want := range uint64(3) { // the server's updates have the stamps 1, 2, …
		select {
		case have := <-asked:
			require.Equal(t, want, have)
		case <-time.After(waitLimit):
			require.Fail(t, "not connected again", stderr.String())
		}
	}
	require.Zero(t, stop())
	require.True(t, strings.HasPrefix(stdout.String(), "1\t7\t0\tremove\taw==\n2\t7\t0\tremove\taw==\n"), stdout.String())
}

// serveSilently is a server that sends one update to each follower, with the stamp behind the one
// asked for, and nothing more. It knows no procedures.
func serveSilently(l net.Listener, asked chan<- uint64) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			in := bufio.NewReader(c)
			if first, err := in.Peek(1); err != nil || first[0] != 0xB1 {
				_, _ = in.ReadString('\n')
				_, _ = io.WriteString(c, "HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				return
			}
			var request [15]byte
			if _, err := io.ReadFull(in, request[:]); err != nil {
				return
			}
			after := binary.BigEndian.Uint64(request[5:])
			asked <- after
			update := binary.BigEndian.AppendUint64([]byte{0xB1, 0xB1}, after+1)
			_, _ = c.Write(append(update, 0, 0, 0, 7, 0, 7, 0, 0, 0xA2, 1, 'k'))
			_, _ = io.Copy(io.Discard, in) // until the other side gives up
		}()
	}
}
