package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
)

var startLines = []string{
	"[SYSTEM]: ================ [START]: pid",
	"[SYSTEM]: opening a database: path=:",
	"[SYSTEM]: starting the server: expr=",
	"[SYSTEM]: server socket opened: expr= timeout.0",
	"[SYSTEM]: listening server socket started: fd",
}

var stopLines = []string{
	"[SYSTEM]: server stopped",
	"[SYSTEM]: finishing the server",
	"[SYSTEM]: closing the server socket",
	"[SYSTEM]: closing a database: path=:",
	"[SYSTEM]: ================ [FINISH]: pid",
}

func TestSignalsThatStop(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR2} {
		t.Run(sig.String(), func(t *testing.T) {
			s := start(t, "-ls")
			s.signal(syscall.SIGPIPE) // means nothing
			s.signal(sig)
			require.Zero(t, s.exitCode())
			require.Equal(t, slices.Concat(startLines, stopLines), s.log("log"))
		})
	}
}

func TestRestartKeepsTheProcessAndItsData(t *testing.T) {
	s := start(t, "-ls", "-pid", "pid")
	pid := strconv.Itoa(s.cmd.Process.Pid) + "\n"
	require.Equal(t, pid, s.read("pid"))
	s.get("/rpc/set?key=a&value=b")
	require.NoError(t, os.Rename(filepath.Join(s.dir, "log"), filepath.Join(s.dir, "old")))

	s.signal(syscall.SIGUSR1)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(s.dir, "log"))
		return err == nil
	}, patience, time.Millisecond)
	s.awaitReply()
	require.Equal(t, "value\tb\n", s.get("/rpc/get?key=a"))
	require.Contains(t, s.get("/rpc/report"), "cnt_set\t1\n")
	require.Equal(t, pid, s.read("pid"))

	s.signal(syscall.SIGTERM)
	require.Zero(t, s.exitCode())
	require.NoFileExists(t, filepath.Join(s.dir, "pid"))
	require.Equal(t, slices.Concat(startLines, stopLines[:3]), s.log("old"))
	require.Equal(t, slices.Concat(startLines[2:], stopLines), s.log("log"))
}

func TestStopIsNotLostInARestart(t *testing.T) {
	s := start(t)
	s.signal(syscall.SIGUSR1)
	s.signal(syscall.SIGTERM)
	require.Zero(t, s.exitCode())
}

func TestFurtherSignalsDuringTheStop(t *testing.T) {
	s := start(t)
	half := s.dial()
	_, err := half.Write([]byte("GET /"))
	require.NoError(t, err)
	s.awaitRead(half)
	s.signal(syscall.SIGTERM) // takes a second, for the sake of the half request
	require.Eventually(t, func() bool { return strings.Contains(s.read("log"), "server stopped") }, patience, time.Millisecond)
	s.signal(syscall.SIGHUP)
	s.signal(syscall.SIGTERM)
	require.Zero(t, s.exitCode())
}

func TestDaemon(t *testing.T) {
	dir := t.TempDir()
	s := &started{t: t, dir: dir, port: freeport.Take(t)}
	launcher := command(t, dir, "-dmn", "-port", strconv.Itoa(s.port), "-ls",
		"-pid", filepath.Join(dir, "pid"), "-log", filepath.Join(dir, "log"))
	out, err := launcher.CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, out)

	s.awaitReply()
	pid, err := strconv.Atoi(strings.TrimSpace(s.read("pid")))
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	require.NotEqual(t, launcher.Process.Pid, pid)
	cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	require.NoError(t, err)
	require.Equal(t, "/", cwd)
	s.get("/rpc/set?key=a&value=b")

	require.NoError(t, syscall.Kill(pid, syscall.SIGHUP)) // a daemon restarts
	require.Eventually(t, func() bool {
		return strings.Count(s.read("log"), "listening server socket started") == 2
	}, patience, time.Millisecond)
	require.Equal(t, "value\tb\n", s.get("/rpc/get?key=a"))

	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	require.Eventually(t, func() bool { return strings.Contains(s.read("log"), "[FINISH]") }, patience, time.Millisecond)
	require.NoFileExists(t, filepath.Join(dir, "pid"))
	require.Equal(t, slices.Concat(startLines, stopLines[:3], startLines[2:], stopLines), s.log("log"))
}

func TestAcknowledgedUpdatesSurviveAKill(t *testing.T) {
	s := start(t, "a.kct")
	require.NotEmpty(t, s.get("/rpc/echo?x=1"))
	s.get("/rpc/set?key=a&value=b")
	s.signal(syscall.SIGKILL)
	require.Equal(t, -int(syscall.SIGKILL), s.exitCode())

	again := &started{t: t, dir: s.dir, port: s.port}
	again.cmd = command(t, s.dir, "-port", strconv.Itoa(s.port), "-log", "log2", "a.kct")
	require.NoError(t, again.cmd.Start())
	again.awaitReply()
	require.Equal(t, "value\tb\n", again.get("/rpc/get?key=a"))
	again.signal(syscall.SIGTERM)
	require.Zero(t, again.exitCode())
}

// A slave that is killed again and again, in the middle of applying, ends with everything that its
// master has.
func TestKilledSlaveMissesNothing(t *testing.T) {
	master := start(t, "-ls", "-ulog", "ulog", "-sid", "1", ":", "%")
	slave := &started{t: t, dir: t.TempDir(), port: freeport.Take(t)}
	args := []string{"-port", strconv.Itoa(slave.port), "-log", "log", "-ls", "-sid", "2", "-ulog", "ulog", "-rts", "rts",
		"-mhost", "127.0.0.1", "-mport", strconv.Itoa(master.port), "-riv", "0", "a.kct", "b.kch"}
	written := 0
	for round := range 4 {
		slave.cmd = command(t, slave.dir, args...)
		require.NoError(t, slave.cmd.Start())
		slave.awaitReply()
		wanted := written + 300*(round+1)
		for ; written < wanted; written++ { // the kill comes while the slave applies the rest of it
			master.get(fmt.Sprintf("/rpc/set?DB=%d&key=%d&value=%d", written%2, written, written))
		}
		if round == 3 {
			break
		}
		slave.signal(syscall.SIGKILL)
		require.Equal(t, -int(syscall.SIGKILL), slave.exitCode())
	}
	counts := func(s *started) string {
		return strings.Join(regexp.MustCompile(`db_\d\tcount=\d+`).FindAllString(s.get("/rpc/report"), -1), " ")
	}
	require.NotEmpty(t, counts(master))
	require.Eventually(t, func() bool { return counts(slave) == counts(master) }, patience, 10*time.Millisecond)
	slave.signal(syscall.SIGTERM)
	require.Zero(t, slave.exitCode())
	require.Len(t, slave.read("rts"), 21)
}
