package remote_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// script runs lines in a shell.
func script(t *testing.T, lines string, options ...string) result {
	t.Helper()
	return command(t, lines, at("shell", options...)...)
}

func TestShellRunsAScript(t *testing.T) {
	clear(t)
	r := script(t, "# words\nset japan tokyo\n\n  set \"a\\tb\" 'x y' # a comment\nget japan\nuse tree\nset k v\nlist -pv\nuse\nget k\n")
	require.Equal(t, 1, r.exit)
	require.Equal(t, "tokyo\nk\tv\n", r.stdout)
	require.Contains(t, r.stderr, "DB::get failed: :"+port+": 3: logical inconsistency: DB: 7: no record")
	require.Contains(t, r.stderr, "ktremotemgr: line 10: get failed\n")
	require.Equal(t, "x y\n", succeed(t, "", "get", "a\tb"))
}

func TestShellStopsAtTheFirstErrorOrGoesOn(t *testing.T) {
	clear(t)
	lines := "get none\nset a 1\nnonsense\nget 'x\nget a"
	r := script(t, lines)
	require.Equal(t, 1, r.exit)
	require.Empty(t, r.stdout)
	require.Contains(t, r.stderr, "line 1: get failed\n")
	require.Equal(t, 1, command(t, "", at("get", "a")...).exit, "the second line has not run")

	r = script(t, lines, "-k")
	require.Equal(t, 1, r.exit)
	require.Equal(t, "1\n", r.stdout)
	for _, want := range []string{"line 1: get failed\n", `line 3: nonsense: unknown command ("help" lists`, "line 4: a quote has no end\n", "lines that failed: 3\n"} {
		require.Contains(t, r.stderr, want)
	}
}

func TestShellViews(t *testing.T) {
	clear(t)
	r := script(t, "set k v\nview json\nget k\nview hex\nget k\nlist -pv\nview tsv\nget k\nreport -json\nexit\nget k\nget none\n")
	require.Zero(t, r.exit, r.stderr)
	require.Regexp(t, "^\\{\"key\":\"k\",\"value\":\"v\"\\}\n76\n6B\t76\nv\n\\{.*\\}\n$", r.stdout)
	require.Contains(t, script(t, "view xml").stderr, "view: it is one of tsv, json, hex")
	require.Contains(t, script(t, "use none").stderr, "use none failed: :"+port+": 2: invalid operation: no such database")
}

func TestShellHelp(t *testing.T) {
	out := script(t, "help\nhelp get\nget --help\n").stdout
	for _, want := range []string{"  use [database]  ", "  get key  ", "-db name ", "ktremotemgr get [option ...] key"} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "  shell  ", "there is no shell in the shell")
	require.Equal(t, 2, strings.Count(out, "-pz"))
}

// The lines of a script are not meant for a command that reads the standard input.
func TestShellScriptIsNoInput(t *testing.T) {
	clear(t)
	r := script(t, "import\nset a 1\n", "-k")
	require.Contains(t, r.stderr, "name a file")
	require.Contains(t, r.stderr, "lines that failed: 1\n")
	require.Equal(t, "1\n", succeed(t, "", "get", "a"))
}

func TestShellKeepsItsConnection(t *testing.T) {
	server := strip(t, "none")
	r := command(t, strings.Repeat("set k v\nget k\nreport\n", 10), "shell", "-port", server.port)
	require.Zero(t, r.exit, r.stderr)
	require.EqualValues(t, 1, server.conns.Load())
	r = script(t, "get -port 1 k\n")
	require.Contains(t, r.stderr, "DB::open failed", "an option of the line is about another server")
}

func TestShellNeedsNoHistoryForAScript(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	t.Setenv("XDG_STATE_HOME", dir)
	require.Zero(t, script(t, "stats cnt_set\n").exit)
	_, err := os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}
