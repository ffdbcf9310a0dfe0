package compat

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxListed is the largest share of the recorded conversations that may be listed, in percent.
const maxListed = 3

// laterReason begins the reason of a row whose cases are not replayed yet.
var laterReason = regexp.MustCompile(`^needs the [a-z-]+ issue\b`)

// differences is DIFFERENCES.md: the cases that are not meant to match.
type differences map[caseID]difference

type difference struct {
	reason string
	later  bool // the feature is missing: the case is not replayed
}

// parseDifferences reads the table rows whose first cell is "FILE: CASE, CASE". Rows with another
// first cell have no recorded case.
func parseDifferences(text string) (differences, error) {
	all := differences{}
	for number, line := range strings.Split(text, "\n") {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		file, names, ok := strings.Cut(strings.ReplaceAll(cells[0], "`", ""), ":")
		if file = strings.TrimSpace(file); !strings.HasPrefix(line, "|") || !ok || !strings.Contains(file, "/") {
			continue
		}
		if len(cells) != 4 {
			return nil, fmt.Errorf("line %d has %d cells, want 4", number+1, len(cells))
		}
		reason := strings.TrimSpace(cells[3])
		if reason == "" {
			return nil, fmt.Errorf("line %d has no reason", number+1)
		}
		for name := range strings.SplitSeq(names, ",") {
			id := caseID{file, strings.TrimSpace(name)}
			if _, twice := all[id]; twice {
				return nil, fmt.Errorf("line %d lists %s again", number+1, id)
			}
			all[id] = difference{reason, laterReason.MatchString(reason)}
		}
	}
	return all, nil
}

func loadDifferences(t *testing.T) differences {
	t.Helper()
	text, _ := readDifferences(t)
	all, err := parseDifferences(text)
	require.NoError(t, err)
	return all
}

// loadEngineDifferences returns the cases that differ where databases are in an engine, and match
// elsewhere.
func loadEngineDifferences(t *testing.T) differences {
	t.Helper()
	_, text := readDifferences(t)
	all, err := parseDifferences(text)
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// readDifferences returns DIFFERENCES.md without the section about databases in an engine, and this
// section.
func readDifferences(t *testing.T) (rest, engine string) {
	t.Helper()
	text, err := os.ReadFile("DIFFERENCES.md")
	require.NoError(t, err)
	before, behind, found := strings.Cut(string(text), "\n## Databases in an engine\n")
	require.True(t, found)
	if end := strings.Index(behind, "\n## "); end >= 0 {
		return before + behind[end:], behind[:end]
	}
	return before, behind
}

// verdict is what a test says about a case, given what the replay found; "" is good.
func (d differences) verdict(id caseID, found string) string {
	row, listed := d[id]
	switch {
	case !listed:
		return found
	case found != "":
		return ""
	}
	return "the case matches, but is listed in DIFFERENCES.md: " + row.reason
}

func TestParseDifferences(t *testing.T) {
	const table = `# Title
| case names | the original | gotycoon | reason |
| --- | --- | --- | --- |
| ` + "`http/13-http-framing: a, b`" + ` | closes: silently | 400 | unsafe |
| binary/05-play_script: c | runs it | BF | needs the scripting issue |
| (no case): keys | any | refused | undefined |
`
	got, err := parseDifferences(table)
	require.NoError(t, err)
	unsafe := difference{"unsafe", false}
	a, b := caseID{"http/13-http-framing", "a"}, caseID{"http/13-http-framing", "b"}
	c := caseID{"binary/05-play_script", "c"}
	require.Equal(t, differences{a: unsafe, b: unsafe, c: {"needs the scripting issue", true}}, got)

	require.Empty(t, got.verdict(a, "differs"))
	require.NotEmpty(t, got.verdict(a, ""), "stale row")
	require.Equal(t, "differs", got.verdict(caseID{"http/13-http-framing", "z"}, "differs"))
	require.Empty(t, got.verdict(caseID{"http/13-http-framing", "z"}, ""))

	for _, broken := range []string{"| http/1: a | b | c |", "| http/1: a | b | c | |", "| http/1: a, a | b | c | d |"} {
		_, err := parseDifferences(broken)
		require.Error(t, err, broken)
	}
}

// TestDifferencesAreCases finds rows that name no case, and more rows than are allowed.
func TestDifferencesAreCases(t *testing.T) {
	cases := loadCases(t)
	known := map[caseID]bool{}
	for _, c := range cases {
		known[c.id()] = true
	}
	for _, c := range readLines[lifecycleCase](t, "testdata/"+lifecycleFile+".jsonl") {
		known[caseID{lifecycleFile, c.Name}] = true
	}
	for _, c := range readJSONLines[memcCase](t, memcQueueFile+".jsonl") {
		known[caseID{memcQueueFile, c.Name}] = true
	}
	for _, file := range cliFiles() {
		for _, r := range loadRuns(t, file) {
			known[caseID{file, r.name}] = true
		}
	}
	for _, file := range []string{"eval", "calls"} {
		for _, c := range readLines[luaCase](t, luaFiles+"/"+file+".jsonl") {
			known[caseID{"lua/" + file, c.Name}] = true
		}
	}
	for id := range memcFiles(t) {
		known[id] = true
	}
	rows := loadDifferences(t)
	for id := range loadEngineDifferences(t) {
		require.True(t, known[id], "no such case: %s", id)
		require.NotContains(t, rows, id, "it differs everywhere")
	}
	conversations := 0
	for id := range rows {
		require.True(t, known[id], "no such case: %s", id)
		if id.file != lifecycleFile && !slices.Contains(cliFiles(), id.file) {
			conversations++
		}
	}
	require.LessOrEqual(t, 100*conversations, maxListed*len(cases), "too many cases are listed: %d", conversations)
}
