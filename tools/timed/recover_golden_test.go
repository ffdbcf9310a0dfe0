package timed_test

import (
	"fmt"
	"gotycoon/compat/recordings"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hexList lists a database as the recordings do.
func hexList(t *testing.T, path string) string {
	t.Helper()
	lines := strings.SplitAfter(succeed(t, "list", "-pv", "-px", "-pt", path), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func recordedText(t *testing.T, golden string, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{golden}, path...)...))
	require.NoError(t, err)
	return string(text)
}

func recorded(t *testing.T, golden string, path ...string) string {
	t.Helper()
	lines := strings.SplitAfter(recordedText(t, golden, path...), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// count is the number in " (N)" at the end of the progress.
func count(t *testing.T, stdout string) int {
	t.Helper()
	if stdout == "" {
		return 0
	}
	_, n, ok := strings.Cut(stdout[strings.LastIndex(stdout[:len(stdout)-1], "\n")+1:], "(")
	require.True(t, ok, stdout)
	number, err := strconv.Atoi(strings.TrimRight(n, ")\n"))
	require.NoError(t, err)
	return number
}

func TestRecoverRecordedLogs(t *testing.T) {
	golden := recordings.Dir(t, "ulog") // logs that the original wrote, with what it recovers from them
	for _, tc := range []struct{ dir, params string }{{"main", ""}, {"persist", "#ktopts=p"}} {
		for dbid := range 2 {
			t.Run(fmt.Sprint(tc.dir, dbid), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "a.kct") + tc.params
				succeed(t, "create", path)
				out := succeed(t, "recover", "-dbid", fmt.Sprint(dbid), path, filepath.Join(golden, tc.dir, "ulog"))
				require.Equal(t, strings.Repeat(".", 50)+" (50)\n"+strings.Repeat(".", 14)+" (64)\n", out)
				require.Equal(t, recorded(t, golden, tc.dir, fmt.Sprintf("db%d.recovered.hex.tsv", dbid)), hexList(t, path))
				plain := create(t)
				succeed(t, "recover", "-dbid", fmt.Sprint(dbid), plain+tc.params, filepath.Join(golden, tc.dir, "ulog"))
				require.Equal(t, hexList(t, path), hexList(t, plain))
			})
		}
	}
}

// TestRecoverOptions is the recorded transcript of the original.
func TestRecoverOptions(t *testing.T) {
	golden := recordings.Dir(t, "ulog") // logs that the original wrote, with what it recovers from them
	log := filepath.Join(golden, "main", "ulog")
	skipped := create(t)
	require.Equal(t, 64, count(t, command("", "recover", "-sid", "7", skipped, log).stdout))
	require.Empty(t, contents(t, skipped))
	path := create(t)
	require.Equal(t, strings.Repeat(".", 17)+" (17)\n", succeed(t, "recover", "-ts", "1795228505663000000", "-dbid", "1", path, log))
	require.Len(t, contents(t, path), 4)
	require.Empty(t, succeed(t, "recover", "-ts", "now", path, log))
	require.Len(t, contents(t, path), 4)
}

// TestRecoverDamagedLogs recovers from the recorded log, damaged in 28 ways. What comes out must be what the original makes of it. For
// those in the table it is more, because the original leaves out what can be read.
func TestRecoverDamagedLogs(t *testing.T) {
	golden := recordings.Dir(t, "ulog") // logs that the original wrote, with what it recovers from them
	better := map[string]int{           // updates that are read, of 64
		"v01": 63, "v02": 63, "v03": 63, "v04": 63, "v05": 55, // the newest segment is shorter than its header says
		"v18": 63, "v19": 63, // the first one is
		"v23": 64, // garbage behind an older one
		"v27": 53, // an older one is empty
	}
	clean := readRecords(t, golden)
	for v := range 28 {
		name := fmt.Sprintf("v%02d", v)
		for dbid := range 2 {
			path := filepath.Join(t.TempDir(), "a.kct")
			succeed(t, "create", path)
			r := command("", "recover", "-dbid", fmt.Sprint(dbid), path, filepath.Join(golden, "truncated", name, "ulog"))
			n, more := better[name]
			if !more {
				require.Equal(t, recorded(t, golden, "truncated", name, fmt.Sprintf("recovered%d.hex.tsv", dbid)), hexList(t, path), name)
				continue
			}
			require.Equal(t, n, count(t, r.stdout), name)
			require.Contains(t, r.stderr, "warning: ", name)
			if name < "v06" {
				require.Equal(t, recoverFirst(t, golden, clean[n-1], dbid), hexList(t, path), name)
			}
			require.Equal(t, "sound\n", lastLine(succeed(t, "verify", path)))
		}
	}
}

// readRecords returns the time stamps of the recorded log.
func readRecords(t *testing.T, golden string) []string {
	t.Helper()
	var stamps []string
	for line := range strings.Lines(recordedText(t, golden, "main", "ktutilmgr-ulog.tsv")) {
		stamp, _, _ := strings.Cut(line, "\t")
		stamps = append(stamps, stamp)
	}
	require.Len(t, stamps, 64)
	return stamps
}

// recoverFirst returns a database as it was at a time stamp.
func recoverFirst(t *testing.T, golden, stamp string, dbid int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b.kct")
	succeed(t, "create", path)
	require.Zero(t, command("", "recover", "-until", stamp, "-dbid", fmt.Sprint(dbid), path, filepath.Join(golden, "main", "ulog")).exit)
	return hexList(t, path)
}

func lastLine(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return lines[max(len(lines)-2, 0)]
}

// Damage that ends the log early is told, and the exit code says so; the file still gets what is in front of it.
func TestRecoverTellsOfDamage(t *testing.T) {
	golden := recordings.Dir(t, "ulog") // logs that the original wrote, with what it recovers from them
	path := filepath.Join(t.TempDir(), "a.kct")
	succeed(t, "create", path)
	r := command("", "recover", path, filepath.Join(golden, "truncated", "v24", "ulog"))
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "0000000001.ulog at offset 105: record without end mark")
	require.Contains(t, r.stderr, "is complete up to the time stamp 1795228492165000000 (2026-11-21T02:34:52.165Z)")
	require.Equal(t, 3, strings.Count(hexList(t, path), "\n"))
}

// Messages that cannot be understood are told one by one; the others are applied.
func TestRecoverOddMessages(t *testing.T) {
	golden := recordings.Dir(t, "ulog") // logs that the original wrote, with what it recovers from them
	path := filepath.Join(t.TempDir(), "a.kct")
	succeed(t, "create", path)
	r := command("", "recover", path, filepath.Join(golden, "odd-messages"))
	require.Equal(t, 1, r.exit)
	require.Equal(t, strings.Repeat(".", 19)+" (19)\n", r.stdout)
	require.Equal(t, 6, strings.Count(r.stderr, "DB::recover failed: "+path+": 2: invalid operation: invalid message format\n"))
	require.Equal(t, 2, strings.Count(r.stderr, "DBUpdateLogger::parse failed: "+path))
	require.Equal(t, "k1\tv1\nlast\tv\noldts\tv\nov\ter\ndupts\tv\n", sorted(succeed(t, "list", "-pv", path), "k1", "last", "oldts", "ov", "dupts"))
}

// sorted returns lines in the order of their beginnings.
func sorted(text string, begins ...string) string {
	var out strings.Builder
	for _, begin := range begins {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, begin+"\t") {
				out.WriteString(line)
			}
		}
	}
	if out.Len() != len(text) {
		return text
	}
	return out.String()
}
