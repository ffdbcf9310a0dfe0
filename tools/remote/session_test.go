package remote_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
	"gotycoon/internal/version"
)

// session is the order in which the files were recorded. State carries over from one to the next.
var session = []string{
	"usage", "set", "get", "list", "remove", "setbulk", "getbulk", "removebulk", "match", "regex", "import", "inform",
	"report", "script", "sync", "vacuum", "tunerepl", "clear",
}

// TestSession replays the recorded session: the same command lines against our server must give the
// same output, errors and exit codes.
func TestSession(t *testing.T) {
	bin := ktproc.Build(t, "ktserver")
	dir := sessionDir(t)
	main := ktproc.Start(t, ktproc.Options{Bin: bin, Dir: dir, DBs: []string{"casket.kch", "tree.kct"},
		Args: []string{"-th", "8", "-ulog", "ulog", "-sid", "1", "-cmd", "cmds", "-rts", "x.rts"}})
	bare := ktproc.Start(t, ktproc.Options{Bin: bin, Dir: t.TempDir()})
	ports := map[string]string{portMain: strconv.Itoa(main.Port), portBare: strconv.Itoa(bare.Port),
		portNobody: strconv.Itoa(freeport.Take(t))}
	recorded := map[string][]run{"slave": load(t, "slave")}
	for _, file := range session {
		recorded[file] = load(t, file)
	}
	t.Chdir(dir)

	passed := 0
	for _, file := range session {
		if file == "clear" {
			replaySlave(t, recorded["slave"], ports)
		}
		for _, r := range recorded[file] {
			if later(file, r) {
				continue
			}
			compare(t, file, r, replay(t, r, ports))
			passed++
		}
	}
	t.Logf("%d command lines give what the original gave", passed)
	main.Stop(t)
	bare.Stop(t)
}

// sessionDir is the working directory of server and commands: what synchronize may call, and a file
// to import.
func sessionDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "cmds"), 0o755))
	for name, code := range map[string]string{"ok": "0", "bad": "1"} {
		text := "#!/bin/sh\nexit " + code + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cmds", name), []byte(text), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.tsv"), []byte(importFile()), 0o644))
	return dir
}

// later tells which runs need a server with scripts, which are other work.
func later(file string, r run) bool {
	return file == "script" && r.option("-port") == portMain && len(r.Stderr) < 1000 // longer: the usage text
}

// compare fails the test when a run differs in something that must be the same.
func compare(t *testing.T, file string, r run, have result) {
	t.Helper()
	want := r.result(t)
	require.Equal(t, want.exit, have.exit, "%s\n%s", r.title(), have.stderr)
	switch {
	case isUsage(want.stderr):
		requireUsage(t, r, have)
		return
	case strings.HasSuffix(r.title(), "version"): // our own is below the original's
		want.stdout += version.Current().String() + "\n"
	case file == "report" && want.exit == 0:
		want.stdout, have.stdout = maskReport(want.stdout), maskReport(have.stdout)
	case file == "inform" || file == "clear":
		want.stdout, have.stdout = maskSizes(want.stdout), maskSizes(have.stdout)
	case unordered(file, r):
		want.stdout, have.stdout = sortLines(want.stdout), sortLines(have.stdout)
		if file == "match" { // lists expired records until they are collected, which may be any time
			want.stdout = strings.Replace(want.stdout, "dead\n", "", 1)
			have.stdout = strings.Replace(have.stdout, "dead\n", "", 1)
		}
	}
	if cutShort(r) && unordered(file, r) {
		require.Equal(t, strings.Count(want.stdout, "\n"), strings.Count(have.stdout, "\n"), r.title())
		return
	}
	require.Equal(t, want.stdout, maskExpiry(want.stdout, have.stdout), r.title())
	require.Equal(t, want.stderr, ourLine.ReplaceAllString(have.stderr, "$1"), r.title())
}

// ourLine is the line behind an error of the original which says which server it is about, and why.
var ourLine = regexp.MustCompile(`((?:connection failed|open error)\n)ktremotemgr: .*\n$`)

func isUsage(stderr string) bool { return strings.Contains(stderr, "\nusage:\n") }

// requireUsage looks at the form of a usage text. The words are our own.
func requireUsage(t *testing.T, r run, have result) {
	t.Helper()
	lines := strings.Split(have.stderr, "\n")
	require.Greater(t, len(lines), 3, r.title())
	require.True(t, strings.HasPrefix(lines[0], "ktremotemgr: "), r.title())
	require.Equal(t, []string{"", "usage:"}, lines[1:3], r.title())
	require.Empty(t, have.stdout, r.title())
}

// unordered reports whether the output is in the order of a hash database, which is undefined.
func unordered(file string, r run) bool {
	return slices.Contains([]string{"list", "match", "regex"}, file) && !r.has("-db")
}

// cutShort reports whether the output has only some of the keys; which keys depends on their order.
func cutShort(r run) bool { return r.option("-max") != "" || r.option("-limit") != "" }

func sortLines(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// maskSizes hides the numbers that depend on the file format. The recording counts an expired
// record, which our server may have collected already.
func maskSizes(text string) string {
	text = strings.Replace(text, "count: 119\n", "count: 120\n", 1)
	inside := []string{"size", "realsize", "cusage", "frgcnt", "pnum", "bnum", "first", "last", "lcnt", "icnt", "root"}
	return maskRows(text, func(name string) bool { return slices.Contains(inside, name) })
}

// maskReport hides the values that differ in every process or build, and the
// counters, which depend on how a command fetches what it prints.
func maskReport(text string) string {
	return maskRows(text, func(name string) bool {
		kind, _, _ := strings.Cut(name, "_")
		return slices.Contains([]string{"serv", "sys", "cnt", "db"}, kind) || strings.HasSuffix(name, "_features")
	})
}

func maskRows(text string, hide func(name string) bool) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if name, _, ok := strings.Cut(line, ": "); ok && hide(name) {
			lines[i] = name + ": *"
		}
	}
	return strings.Join(lines, "\n")
}
