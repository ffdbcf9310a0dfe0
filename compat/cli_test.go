package compat

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
)

// cliRun is a recorded run of one of the original's tools.
type cliRun struct {
	Argv   []string
	Stdin  string // Base64
	Exit   int
	Stdout string `json:"stdout_b64"`
	Stderr string `json:"stderr_b64"`

	name string // the arguments, and a number where they come again
}

// cliFiles are the recordings of tools that are replayed here, as DIFFERENCES.md names them.
func cliFiles() []string { return []string{"cli/kttimedmgr", "cli/ktutilmgr"} }

// programs are the paths of the built commands.
type programs struct{ server, timed, util string }

// TestTools runs the tests of the tools that work without a server, with programs built once.
func TestTools(t *testing.T) {
	p := programs{ktproc.BuildPlain(t, "ktserver"), ktproc.BuildPlain(t, "kttimedmgr"), ktproc.BuildPlain(t, "ktutilmgr")}
	t.Run("kttimedmgr", func(t *testing.T) { replayTimedManager(t, p) })
	t.Run("ktutilmgr", func(t *testing.T) { replayUtilityManager(t, p) })
	t.Run("kill", func(t *testing.T) { testTimedManagerAfterAKill(t, p) })
}

// loadRuns reads the recorded runs of a file.
func loadRuns(t *testing.T, file string) []cliRun {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file + ".jsonl")
	require.NoError(t, err)
	var runs []cliRun
	seen := map[string]int{}
	for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
		var r cliRun
		require.NoError(t, dec.Decode(&r))
		r.name = strings.Join(r.Argv[1:], " ")
		if seen[r.name]++; seen[r.name] > 1 {
			r.name = fmt.Sprintf("%s (%d)", r.name, seen[r.name])
		}
		runs = append(runs, r)
	}
	return runs
}

// cliResult is how a run ended.
type cliResult struct {
	exit           int
	stdout, stderr string
}

func (r cliRun) result(t *testing.T) cliResult {
	return cliResult{r.Exit, fromBase64(t, r.Stdout), fromBase64(t, r.Stderr)}
}

func fromBase64(t *testing.T, text string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	return string(b)
}

// runTool runs a program in a directory.
func runTool(t *testing.T, dir, bin, stdin string, args ...string) cliResult {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, strings.NewReader(stdin), &stdout, &stderr
	cmd.Env = append(os.Environ(), "TZ=UTC", "GORACE=atexit_sleep_ms=0") // no pause at the end
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		require.NoError(t, err)
	}
	return cliResult{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// advised are the runs whose error has one line more than the original's: what to look at.
func advised() []string {
	return []string{
		"merge merged.kch nofile.kch", "get nofile.kch x", "inform noext", "set nofile.kch a b", "recover nofile.kch ulog",
		"rpc -port 20299 void",
	}
}

// withoutAdvice returns the result of a run without that line, which must be there.
func (r cliRun) withoutAdvice(t *testing.T, have cliResult) cliResult {
	t.Helper()
	if slices.Contains(advised(), r.name) {
		first, advice, _ := strings.Cut(have.stderr, "\n")
		require.Regexp(t, `^kt(timed|util)mgr: \S.*\n$`, advice, r.name)
		have.stderr = first + "\n"
	}
	return have
}

// differs says in which way a result is not the recorded one; "" is good.
func (r cliResult) differs(want cliResult) string {
	switch {
	case r.exit != want.exit:
		return fmt.Sprintf("exit code %d, want %d; stderr: %s", r.exit, want.exit, r.stderr)
	case r.stdout != want.stdout:
		return fmt.Sprintf("stdout\n%q, want\n%q", r.stdout, want.stdout)
	case strings.Contains(want.stderr, "\nusage:\n") && strings.Contains(r.stderr, "\nusage:\n"):
		return "" // the text is our own
	case r.stderr != want.stderr:
		return fmt.Sprintf("stderr\n%q, want\n%q", r.stderr, want.stderr)
	}
	return ""
}

// mask replaces the parts of the output that differ between machines or runs.
func (r cliResult) mask(what *regexp.Regexp, by string) cliResult {
	r.stdout = what.ReplaceAllString(r.stdout, by)
	return r
}

// sorted sorts the lines of the output of a hash database, whose order is undefined.
func (r cliResult) sorted() cliResult {
	lines := strings.SplitAfter(r.stdout, "\n")
	sort.Strings(lines)
	r.stdout = strings.Join(lines, "")
	return r
}

// copyTo copies files into a directory, which it makes.
func copyTo(t *testing.T, dir, pattern string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, content := range contents(t, "testdata", pattern) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
}

// replayUtilityManager replays the recorded runs of ktutilmgr against a server with one database in
// memory.
func replayUtilityManager(t *testing.T, p programs) {
	const file = "cli/ktutilmgr"
	dir, listed := t.TempDir(), loadDifferences(t)
	copyTo(t, filepath.Join(dir, "ulog"), "ulog/*.ulog")
	server := ktproc.Start(t, ktproc.Options{Bin: p.server, Dir: dir, DBs: []string{":"}})
	ports := strings.NewReplacer(recordedServer, strconv.Itoa(server.Port), recordedNobody, strconv.Itoa(freeport.Take(t)))
	for _, r := range loadRuns(t, file) {
		var args []string
		for _, arg := range r.Argv[1:] {
			args = append(args, ports.Replace(arg))
		}
		have := runTool(t, dir, p.util, fromBase64(t, r.Stdin), args...).mask(dateRow, "Date: D")
		want := r.result(t).mask(dateRow, "Date: D")
		want.stdout, want.stderr = ports.Replace(want.stdout), ports.Replace(want.stderr)
		if bad := listed.verdict(caseID{file, r.name}, r.withoutAdvice(t, have).differs(want)); bad != "" {
			t.Errorf("ktutilmgr %s: %s", r.name, bad)
		}
	}
}

// Ports of the recording.
const (
	recordedServer = "20252"
	recordedNobody = "20299"
)

// dateRow is the time of the answer.
var dateRow = regexp.MustCompile(`(?m)^Date: .*$`)
