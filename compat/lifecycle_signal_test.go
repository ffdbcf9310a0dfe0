package compat

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
)

// signalNamed finds the signal in the name of a case.
func signalNamed(t *testing.T, name string) syscall.Signal {
	t.Helper()
	word := strings.Split(name, "-")[1]
	numbers := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP,
		"USR2": syscall.SIGUSR2, "QUIT": syscall.SIGQUIT}
	require.Contains(t, numbers, word)
	return numbers[word]
}

// signal sends a signal to a server with an idle connection, a waiting connection, and, as the case
// says, a connection in the middle of a request.
func (l *life) signal(t *testing.T) (difference string) {
	l.begin(t, nil)
	idle := l.dial(t)
	idle.ask(t, post("set", "key\tk\nvalue\tv\n"))
	awaitLines(t, l.server.Output, connected, 2)
	waiter := l.dial(t)
	waiter.send(post("void", "WAIT\tnever\nWAITTIME\t60\n"), 0, 0)
	awaitLines(t, l.server.Output, connected, 3)
	if strings.HasSuffix(l.Name, "half-request") {
		half := l.dial(t)
		half.send("POST /rp", 0, 0)
		awaitLines(t, l.server.Output, connected, 4)
	}
	l.awaitRead(t, waiter)
	time.Sleep(100 * time.Millisecond) //lint:sleep nothing tells from outside that a request has begun to wait
	l.server.Signal(t, signalNamed(t, l.Name))
	if l.ExitCode == 0 {
		waiter.awaitResponses(1, false, time.Now().Add(answerLimit))
		require.Equal(t, "503", statusOf(string(waiter.buf)), "answer to the one who waits")
	}
	idle.awaitEOF(t, answerLimit)
	return l.exit(t)
}

// awaitRead waits until the server has read what a client has sent.
func (l *life) awaitRead(t *testing.T, c *replayConn) {
	t.Helper()
	const table = "/proc/net/tcp" // of each socket: number, address, address of the other end, state, bytes to be sent and read
	server, client := l.server.Port, c.LocalAddr().(*net.TCPAddr).Port
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(table)
		if os.IsNotExist(err) {
			return true // no Linux
		}
		const empty = "00000000:00000000"
		_, sent, found := strings.Cut(string(text), fmt.Sprintf(":%04X 0100007F:%04X ", client, server))
		_, come, known := strings.Cut(string(text), fmt.Sprintf(":%04X 0100007F:%04X ", server, client))
		return found && known && strings.SplitN(sent, " ", 3)[1] == empty && strings.SplitN(come, " ", 3)[1] == empty
	}, answerLimit, time.Millisecond)
}

// restart sends USR1 to a server whose log has been renamed.
func (l *life) restart(t *testing.T) (difference string) {
	log := readFile(t, l.path("a.log"))
	l.begin(t, log)
	c := l.dial(t)
	c.ask(t, post("set", "key\tk\nvalue\tv\n"))
	c.ask(t, post("cur_jump", "CUR\t1\n"))
	pid := readFile(t, l.path("x.pid"))()
	require.Equal(t, strconv.Itoa(l.server.PID())+"\n", pid)
	require.NoError(t, os.Rename(l.path("a.log"), l.path("b.log")))
	l.server.Signal(t, syscall.SIGUSR1)
	c.awaitEOF(t, answerLimit)
	awaitLines(t, log, listening, 1)
	c = l.dial(t)
	require.True(t, strings.HasSuffix(c.ask(t, post("get", "key\tk\n")), "\r\n\r\nvalue\tv\n"), "the record survives")
	require.Contains(t, c.ask(t, post("report", "")), "cnt_set\t1\n", "the counters survive")
	require.Equal(t, pid, readFile(t, l.path("x.pid"))(), "the process ID file is unchanged")
	l.server.Signal(t, syscall.SIGTERM)
	require.Equal(t, l.ExitCode, l.server.ExitCode(t))
	require.NoFileExists(t, l.path("x.pid"))
	if difference := l.compareLog(l.RotatedLog, readFile(t, l.path("b.log"))()); difference != "" {
		return "renamed log: " + difference
	}
	return l.compareLog(l.Output, log())
}

// daemon starts a daemon, restarts it with HUP and stops it.
func (l *life) daemon(t *testing.T) (difference string) {
	pidFile, logFile := l.path("x.pid"), l.path("a.log")
	l.opts.Args = []string{"-dmn", "-pid", pidFile, "-log", logFile}
	log := readFile(t, logFile)
	l.server = ktproc.Launch(t, l.opts, freeport.Take(t))
	require.Equal(t, 0, l.server.ExitCode(t), "exit code of the launcher")
	pid := awaitPID(t, pidFile)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // still runs only if the test failed
	awaitLines(t, log, listening, 1)
	cwd, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	require.NoError(t, err)
	require.Equal(t, "/", cwd)

	c := l.dial(t)
	c.ask(t, post("set", "key\tk\nvalue\tv\n"))
	require.NoError(t, syscall.Kill(pid, syscall.SIGHUP))
	c.awaitEOF(t, answerLimit)
	awaitLines(t, log, listening, 2)
	c = l.dial(t)
	require.True(t, strings.HasSuffix(c.ask(t, post("get", "key\tk\n")), "\r\n\r\nvalue\tv\n"), "the record survives")
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, answerLimit, 5*time.Millisecond)
	require.NoFileExists(t, pidFile)
	return l.compareLog(l.Output, log())
}

// awaitPID waits for the file with the process ID of a daemon.
func awaitPID(t *testing.T, path string) (pid int) {
	t.Helper()
	read := readFile(t, path)
	require.Eventually(t, func() bool {
		var err error
		pid, err = strconv.Atoi(strings.TrimSuffix(read(), "\n"))
		return err == nil && pid > 0 && slices.Contains([]byte(read()), '\n')
	}, answerLimit, 5*time.Millisecond)
	return pid
}
