package compat

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// sizeRows are the bytes of a file: its format is our own.
	sizeRows = regexp.MustCompile(`(?m)^(size|realsize): \d+$`)
	// copied is what a copy says of those bytes.
	copied = regexp.MustCompile(`^\.* \(end\)\n\d+ blocks`)
)

// replayTimedManager replays the recorded runs of kttimedmgr, in their order, in one directory.
func replayTimedManager(t *testing.T, p programs) {
	const file = "cli/kttimedmgr"
	dir, listed := t.TempDir(), loadDifferences(t)
	copyTo(t, filepath.Join(dir, "ulog"), "ulog/*.ulog")
	copyTo(t, filepath.Join(dir, "bgs"), "snapshot/*.ktss")
	copyTo(t, dir, "snapshot/00000001.ktss")
	for _, r := range loadRuns(t, file) {
		have := runTool(t, dir, p.timed, fromBase64(t, r.Stdin), r.Argv[1:]...)
		want := r.result(t)
		if bad := listed.verdict(caseID{file, r.name}, comparable(r, r.withoutAdvice(t, have)).differs(comparable(r, want))); bad != "" {
			t.Errorf("kttimedmgr %s: %s", r.name, bad)
		}
	}
	compareRelog(t, dir, p.util)
}

// comparable removes undefined parts of the output, and sizes of files.
func comparable(r cliRun, got cliResult) cliResult {
	got = got.mask(sizeRows, "$1: N").mask(copied, ". (end)\nN blocks")
	if len(r.Argv) > 1 && r.Argv[1] == "list" && slices.ContainsFunc(r.Argv, isHash) {
		return got.sorted()
	}
	if len(r.Argv) == 3 && r.Argv[1] == "bgsinform" && r.Argv[2] == "bgs" {
		return got.sorted()
	}
	return got
}

func isHash(path string) bool { return strings.HasSuffix(path, ".kch") }

// compareRelog looks at the log that "recover -ulog relog" has written: the updates of the
// original's, with new time stamps.
func compareRelog(t *testing.T, dir, util string) {
	t.Helper()
	runs := loadRuns(t, "cli/ktutilmgr-relog-after-recover")
	for _, r := range runs {
		if slices.Contains(r.Argv, "-uf") {
			continue // how a log is divided into files is no one's business
		}
		have := runTool(t, dir, util, "", r.Argv[1:]...)
		require.True(t, slices.Equal(updatesOf(fromBase64(t, r.Stdout)), updatesOf(have.stdout)), "other updates than the recorded ones")
	}
}

// updatesOf is the output of "ktutilmgr ulog" without the time stamps.
func updatesOf(text string) []string {
	var updates []string
	for line := range strings.Lines(text) {
		_, update, _ := strings.Cut(line, "\t")
		updates = append(updates, update)
	}
	return updates
}
