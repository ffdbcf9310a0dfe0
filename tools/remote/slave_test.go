package remote_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/compat/recordings"
	"gotycoon/tools/remote"
)

// replaySlave replays the part of the session that reads the update log. Our time stamps take the
// place of the recorded ones, line by line.
func replaySlave(t *testing.T, runs []run, ports map[string]string) {
	t.Helper()
	stamps := map[string]string{}
	for _, r := range runs {
		if r.Exit < 0 { // waits until it is killed
			requireWaiting(t, ports[portMain])
			continue
		}
		for i, arg := range r.Argv {
			if ours, ok := stamps[arg]; ok {
				r.Argv[i] = ours
			}
		}
		want, have := r.result(t), replay(t, r, ports)
		if len(stamps) == 0 {
			pairStamps(t, stamps, want.stdout, have.stdout)
		}
		require.Equal(t, want.exit, have.exit, r.title())
		require.Equal(t, want.stderr, ourLine.ReplaceAllString(have.stderr, "$1"), r.title())
		if r.has("-uf") && want.exit == 0 {
			require.Regexp(t, `^ulog/0000000001\.ulog\t\d+\t\d{19}\n$`, have.stdout)
			continue
		}
		require.Equal(t, maskPrefixes(replaceStamps(stamps, want.stdout)), maskPrefixes(have.stdout), r.title())
	}
}

// requireWaiting runs the command that waits for more updates, which prints them as they come.
func requireWaiting(t *testing.T, port string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr output
	ended := make(chan int, 1)
	args := []string{"slave", "-port", port, "-uw", "-ts", "now"}
	go func() { ended <- remote.Main(ctx, args, strings.NewReader(""), &stdout, &stderr) }()
	want := "\t1\t0\tset\td2hpbGU=\t//////93YWl0aW5n\n"
	require.Eventually(t, func() bool {
		require.Zero(t, command(t, "", "set", "-port", port, "while", "waiting").exit)
		return strings.Contains(stdout.String(), want)
	}, waitLimit, 10*time.Millisecond)
	cancel()
	require.Zero(t, <-ended, stderr.String())
}

// maskPrefixes hides the expiration times of our days, which stored values begin with.
func maskPrefixes(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		columns := strings.Split(line, "\t")
		value, err := base64.StdEncoding.DecodeString(columns[len(columns)-1])
		if err != nil || len(columns) != 6 || len(value) < 5 {
			continue
		}
		xt := int64(value[0])<<32 | int64(binary.BigEndian.Uint32(value[1:]))
		if epoch.MatchString(strconv.FormatInt(xt, 10)) {
			columns[5] = "*" + string(value[5:])
			lines[i] = strings.Join(columns, "\t")
		}
	}
	return strings.Join(lines, "\n")
}

// pairStamps notes which of our time stamps belongs to which recorded one.
func pairStamps(t *testing.T, stamps map[string]string, want, have string) {
	t.Helper()
	recorded, ours := strings.Split(want, "\n"), strings.Split(have, "\n")
	require.Len(t, ours, len(recorded), "updates in the log:\n%s", have)
	for i, line := range recorded {
		stamps[firstColumn(line)] = firstColumn(ours[i])
	}
}

func firstColumn(line string) string {
	text, _, _ := strings.Cut(line, "\t")
	return text
}

func replaceStamps(stamps map[string]string, text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		recorded, rest, ok := strings.Cut(line, "\t")
		if ok {
			lines[i] = stamps[recorded] + "\t" + rest
		}
	}
	return strings.Join(lines, "\n")
}

// TestSegments replays the commands recorded with a log of three segments, of which we take a copy.
func TestSegments(t *testing.T) {
	runs := load(t, "slave-3segments")
	from := filepath.Join(recordings.Dir(t, "ulog"), "main", "ulog")
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "ulog"), os.DirFS(from)))
	s := ktproc.Start(t, ktproc.Options{Bin: ktproc.Build(t, "ktserver"), Dir: dir, Args: []string{"-ulog", "ulog", "-sid", "1"}})
	for _, r := range runs {
		want, have := r.result(t), replay(t, r, map[string]string{portSegments: strconv.Itoa(s.Port)})
		// Opening the log closes its last group with a record of our own.
		have.stdout = strings.Replace(have.stdout, "0000000003.ulog\t557\t", "0000000003.ulog\t529\t", 1)
		require.Equal(t, want, have, r.title())
	}
	s.Stop(t)
}
