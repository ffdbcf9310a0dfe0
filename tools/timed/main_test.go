package timed_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/internal/version"
	"gotycoon/tools/timed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is how a command ended.
type result struct {
	exit           int
	stdout, stderr string
}

// command runs kttimedmgr.
func command(stdin string, args ...string) result {
	var stdout, stderr bytes.Buffer
	exit := timed.Main(context.Background(), args, strings.NewReader(stdin), &stdout, &stderr)
	return result{exit, stdout.String(), stderr.String()}
}

// succeed runs a command that must neither fail nor warn, and returns what it printed.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	r := command("", args...)
	require.Zero(t, r.exit, "%v: %s", args, r.stderr)
	require.Empty(t, r.stderr, "%v", args)
	return r.stdout
}

// fail runs a command that must fail, and returns what it said.
func fail(t *testing.T, args ...string) string {
	t.Helper()
	r := command("", args...)
	require.Equal(t, 1, r.exit, "%v printed %s", args, r.stdout)
	return r.stderr
}

func TestHelp(t *testing.T) {
	require.Equal(t, "Kyoto Tycoon 0.9.56b (2.19) on Linux (Kyoto Cabinet 1.2.76a)\n"+version.Current().String()+"\n", succeed(t, "version"))
	require.Equal(t, succeed(t, "--version"), succeed(t, "version"))
	require.Contains(t, succeed(t, "usage"), "kttimedmgr merge")
	require.Contains(t, succeed(t, "set", "--help"), "-inci")
	require.Contains(t, fail(t), "\nusage:\n")
	require.Equal(t, "kttimedmgr: unknown command nonsense\n\nusage:\n  kttimedmgr COMMAND [option ...] [argument ...]\n\n"+
		"\"kttimedmgr --help\" lists the commands.\n", fail(t, "nonsense"))
	require.Contains(t, fail(t, "improt", "a.kct"), "kttimedmgr: unknown command improt; did you mean import?\n")
	require.Equal(t, "kttimedmgr: get: an argument is missing\n\nusage:\n  kttimedmgr get [option ...] database key\n\n"+
		"\"kttimedmgr get --help\" explains the options.\n", fail(t, "get", "a.kct"))
	for _, args := range [][]string{
		{"get"}, {"get", "a.kct"}, {"get", "a.kct", "k", "more"}, {"get", "-nonsense", "a.kct", "k"}, {"get", "-sid", "65536", "a.kct", "k"},
		{"get", "-dbid", "-1", "a.kct", "k"}, {"merge", "a.kct"}, {"set", "-inci", "a.kct", "k", "x"}, {"set", "-incd", "a.kct", "k", "nan"},
	} {
		require.Contains(t, fail(t, args...), "\nusage:\n", "%v", args)
	}
}
