package remote_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/services/lock"
)

// risingFences are tokens in memory.
type risingFences struct{ bound atomic.Uint64 }

func (f *risingFences) Reserve(n uint64) (uint64, error) { return f.bound.Add(n) - n + 1, nil }

// locks is a lock server for a test.
type locks struct {
	*client.Locks
	t    *testing.T
	port string
}

func startLocks(t *testing.T) *locks {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := lock.New(lock.Options{Fences: &risingFences{}})
	require.NoError(t, err)
	s.Start(l)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return &locks{Locks: client.NewLocks(l.Addr().String(), client.Options{}), t: t, port: port}
}

func (l *locks) run(args ...string) result {
	l.t.Helper()
	return command(l.t, "input", append([]string{"lock", "-host", "127.0.0.1", "-port", l.port}, args...)...)
}

func TestLockRunsACommand(t *testing.T) {
	l := startLocks(t)
	require.Equal(t, result{stdout: "1 input"}, l.run("job", "--", "sh", "-c", `printf "$KT_FENCE "; cat`))
	require.Equal(t, result{stdout: "2\n"}, l.run("job", "--", "sh", "-c", `echo $KT_FENCE`), "it grows")
	require.Equal(t, result{exit: 7}, l.run("job", "--", "sh", "-c", "exit 7"))
	require.Equal(t, result{exit: 128 + 9}, l.run("job", "--", "sh", "-c", "kill -9 $$"))
	require.Equal(t, 1, l.run("job", "--", "/no/such/command").exit)
	require.Equal(t, result{stdout: "holders: 0\nwaiters: 0\n"}, l.run("-status", "job"), "it has been released each time")
}

func TestLockThatIsNotGranted(t *testing.T) {
	l := startLocks(t)
	held, err := l.Acquire(t.Context(), "job", client.LockOptions{})
	require.NoError(t, err)
	for _, wait := range []string{"0", "0.5"} {
		require.Equal(t, result{exit: 75, stderr: "ktremotemgr: job: the lock was not granted in time\n"},
			l.run("-wait", wait, "job", "--", "echo", "run"))
	}
	require.Equal(t, result{stdout: "run\n"}, l.run("-max", "2", "other", "--", "echo", "run"))
	listed := l.run("-list").stdout
	require.Regexp(t, `\Ajob\tholds\t127\.0\.0\.1:\d+\t\d+\.\d{3}\t\d+\.\d{3}\t1\t1\n\z`, listed)
	require.Equal(t, listed[:10], l.run("-list", "job").stdout[:10])
	require.Regexp(t, `\A\{"address":"127\.0\.0\.1:\d+","age":[0-9.e-]+,"fence":1,"key":"job","left":[0-9.]+,"max":1,"state":"holds"\}\n\z`, l.run("-list", "-json").stdout)
	require.Equal(t, result{stdout: "{\"holders\":1,\"waiters\":0}\n"}, l.run("-status", "-json", "job"))
	require.NoError(t, held.Release(t.Context()))
	require.Empty(t, l.run("-list").stdout)
}

// A command that has lost its lock is told to end.
func TestLockThatIsLost(t *testing.T) {
	l := startLocks(t)
	ended := make(chan result, 1)
	runs := filepath.Join(t.TempDir(), "runs")
	go func() { ended <- l.run("job", "--", "sh", "-c", "touch "+runs+"; exec sleep 60") }()
	require.Eventually(t, func() bool {
		_, err := os.Stat(runs)
		return err == nil
	}, waitLimit, time.Millisecond)
	list, err := l.List(t.Context(), "job")
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, result{exit: 1, stderr: "ktremotemgr: there is no such holder or waiting request\n"}, l.run("-cancel", "1.2.3.4:5", "job"))
	require.Equal(t, result{}, l.run("-cancel", list[0].Address, "job"))
	select {
	case r := <-ended:
		require.Equal(t, 76, r.exit)
		require.True(t, strings.HasPrefix(r.stderr, "ktremotemgr: job: the lock is lost: "), r.stderr)
	case <-time.After(waitLimit):
		require.Fail(t, "the command goes on")
	}
}

func TestLockCommandLineThatCannotBeMeant(t *testing.T) {
	l := startLocks(t)
	for _, args := range [][]string{
		{}, {"k"}, {"k", "--"}, {"k", "true"}, {"--", "true"}, {"-status"}, {"-status", "a", "b"}, {"-list", "a", "b"}, {"-cancel", "x"},
		{"-max", "0", "k", "--", "true"}, {"-ttl", "0", "k", "--", "true"}, {"a b", "--", "true"}, {"-status", "a b"},
	} {
		r := l.run(args...)
		require.Equal(t, 1, r.exit, args)
		require.NotEmpty(t, r.stderr, args)
		require.Empty(t, r.stdout, args)
	}
}
