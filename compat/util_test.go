package compat

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gotycoon/compat/ktproc"
)

// Ports of the recording.
const (
	recordedServer = "20252"
	recordedNobody = "20299"
)

// dateRow is the time of the answer.
var dateRow = regexp.MustCompile(`(?m)^Date: .*$`)

// replayUtilityManager replays the recorded runs of ktutilmgr against a server with one database in memory.
func replayUtilityManager(t *testing.T, p programs) {
	const file = "cli/ktutilmgr"
	dir, listed := t.TempDir(), loadDifferences(t)
	copyTo(t, filepath.Join(dir, "ulog"), "ulog/*.ulog")
	server := ktproc.Start(t, ktproc.Options{Bin: p.server, Dir: dir, DBs: []string{":"}})
	ports := strings.NewReplacer(recordedServer, strconv.Itoa(server.Port), recordedNobody, strconv.Itoa(ktproc.FreePort(t)))
	for _, r := range loadRuns(t, file) {
		var args []string
		for _, arg := range r.Argv[1:] {
			args = append(args, ports.Replace(arg))
		}
		have := runTool(t, dir, p.util, fromBase64(t, r.Stdin), args...).mask(dateRow, "Date: D")
		want := r.result(t).mask(dateRow, "Date: D")
		want.stdout, want.stderr = ports.Replace(want.stdout), ports.Replace(want.stderr)
		if bad := listed.verdict(caseID{file, r.name}, have.differs(want)); bad != "" {
			t.Errorf("ktutilmgr %s: %s", r.name, bad)
		}
	}
}
