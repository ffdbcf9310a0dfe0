package remote_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/tools/remote"
)

// TestSignals replays the recorded waiting for signals.
func TestSignals(t *testing.T) {
	clear(t)
	runs := load(t, "signals")
	ports := map[string]string{portMain: port}
	woken, timedOut := runs[0], runs[1]

	waiting := make(chan result, 1)
	go func() {
		var stdout, stderr bytes.Buffer
		exit := remote.Main(t.Context(), withPorts(woken, ports), strings.NewReader(""), &stdout, &stderr)
		waiting <- result{exit: exit, stdout: stdout.String(), stderr: stderr.String()}
	}()
	require.Eventually(t, func() bool {
		succeed(t, "", "set", "-ssname", "sig", "k", "v") // it may not wait yet
		return len(waiting) == 1
	}, waitLimit, time.Millisecond)
	require.Equal(t, woken.result(t), <-waiting)
	require.Equal(t, timedOut.result(t), replay(t, timedOut, ports))
}

// The recorded -ssbrd wakes one waiter; ours wakes all, which is what it is for.
func TestBroadcast(t *testing.T) {
	clear(t)
	waiting := make(chan int, 2)
	for range cap(waiting) {
		go func() {
			var out bytes.Buffer
			waiting <- remote.Main(t.Context(), at("get", "-swname", "all", "-swtime", "60", "k"), strings.NewReader(""), &out, &out)
		}()
	}
	require.Eventually(t, func() bool {
		succeed(t, "", "set", "-ssname", "all", "-ssbrd", "k", "v")
		return len(waiting) == cap(waiting)
	}, waitLimit, time.Millisecond)
	for range cap(waiting) {
		require.Zero(t, <-waiting)
	}
}

// Signals are for the first call of a command, not for each.
func TestSignalOfAListWaitsOnce(t *testing.T) {
	clear(t)
	succeed(t, "", "setbulk", "-db", "tree", "a", "1", "b", "2", "c", "3")
	for _, args := range [][]string{at("list", "-db", "tree"), at("match", "-db", "tree", "", "none")} {
		args = append(args[:3:3], append([]string{"-swname", "once", "-swtime", "60"}, args[3:]...)...)
		waiting := make(chan result, 1)
		go func() {
			var stdout, stderr bytes.Buffer
			exit := remote.Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
			waiting <- result{exit, stdout.String(), stderr.String()}
		}()
		require.Eventually(t, func() bool {
			succeed(t, "", "inform", "-ssname", "once")
			return len(waiting) == 1
		}, waitLimit, time.Millisecond)
		require.Equal(t, result{stdout: "a\nb\nc\n"}, <-waiting)
	}
}
