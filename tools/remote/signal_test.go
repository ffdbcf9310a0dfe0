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

// The recorded -ssbrd wakes one waiter, since the original sends it in a form that its server
// ignores. Ours must be understood.
func TestBroadcastIsAskedFor(t *testing.T) {
	fake, request := answerOne(t)
	r := command(t, "", "remove", "-port", fake, "-ssname", "all", "-ssbrd", "k")
	require.Zero(t, r.exit, r.stderr)
	require.Contains(t, <-request, "SIGNAL\tall\nSIGNALBROAD\t\n")
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
