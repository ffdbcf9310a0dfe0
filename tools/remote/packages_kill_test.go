package remote_test

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/tools/remote"
)

// TestPackagesAfterAKill kills the server in the middle of an import. What had a dot must be there
// after the restart, what had none may be, and there must be nothing else. The import then runs
// again, to its end.
func TestPackagesAfterAKill(t *testing.T) {
	in := packageLines(t)
	bin := ktproc.Build(t, "ktserver")
	for name, options := range ways {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := packageServer(t, bin, dir)
			acknowledged := importUntilKilled(t, s, in, options)
			s = packageServer(t, bin, dir)
			have := storedPackages(t, s)
			for key, value := range records(in[:acknowledged]) {
				require.Equal(t, value, have[key], key)
			}
			all := records(in)
			for key, value := range have {
				require.Equal(t, all[key], value, key)
			}
			t.Logf("%d of %d records acknowledged, %d there after the restart", acknowledged, len(in), len(have))

			r := command(t, strings.Join(in, ""), slices.Concat([]string{"import", "-port", strconv.Itoa(s.Port)}, options)...)
			require.Zero(t, r.exit, r.stderr)
			require.Equal(t, all, storedPackages(t, s))
			s.Stop(t)
		})
	}
}

func storedPackages(t *testing.T, s *ktproc.Server) map[string]string {
	t.Helper()
	r := command(t, "", "list", "-port", strconv.Itoa(s.Port), "-pv")
	require.Zero(t, r.exit, r.stderr)
	if r.stdout == "" {
		return map[string]string{}
	}
	return records(strings.SplitAfter(strings.TrimSuffix(r.stdout, "\n"), "\n"))
}

// importUntilKilled feeds lines to an import, kills the server while it runs, and returns how many
// lines were acknowledged. The last third of the lines waits for the kill, so that it can never
// come too late.
func importUntilKilled(t *testing.T, s *ktproc.Server, in, options []string) int {
	t.Helper()
	r, w := io.Pipe()
	killed := make(chan struct{})
	go feed(w, in, killed)
	args := slices.Concat([]string{"import", "-port", strconv.Itoa(s.Port)}, options)
	var stdout, stderr output
	exit := make(chan int, 1)
	go func() {
		exit <- remote.Main(context.WithoutCancel(t.Context()), args, r, &stdout, &stderr)
		_ = r.Close() // the feeder may be waiting
	}()
	dots := func() int { return strings.Count(stdout.String(), ".") }
	require.Eventually(t, func() bool { return dots() > len(in)/3 }, waitLimit, time.Millisecond)
	s.Kill()
	close(killed)
	require.Equal(t, 1, <-exit)
	require.Contains(t, stderr.String(), "6: network error")
	require.Less(t, dots(), len(in))
	return dots()
}

// feed writes lines in small pieces, of which each is sent at once.
func feed(w *io.PipeWriter, in []string, killed <-chan struct{}) {
	const piece = 50
	for i := 0; i < len(in); i += piece {
		if i > len(in)*2/3 {
			<-killed
		}
		if _, err := io.WriteString(w, strings.Join(in[i:min(i+piece, len(in))], "")); err != nil {
			return // the import has ended
		}
	}
	_ = w.Close()
}

// records makes a map of lines.
func records(lines []string) map[string]string {
	m := make(map[string]string, len(lines))
	for _, line := range lines {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		m[key] = value
	}
	return m
}
