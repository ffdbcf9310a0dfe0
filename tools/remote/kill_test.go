package remote_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/tools/remote"
)

// TestKillDuringImport kills the server in the middle of an import. Every line with a dot must be
// stored.
func TestKillDuringImport(t *testing.T) {
	bin := ktproc.Build(t, "ktserver")
	for name, options := range map[string][]string{"text": {}, "binary": {"-bin"}} {
		t.Run(name, func(t *testing.T) {
			o := ktproc.Options{Bin: bin, Dir: t.TempDir(), DBs: []string{"a.kct"}, Args: []string{"-checkpoint", "256k"}}
			s := ktproc.Start(t, o)
			args := append([]string{"import", "-port", strconv.Itoa(s.Port)}, options...)
			var stdout, stderr output
			exit := make(chan int, 1)
			go func() { exit <- remote.Main(t.Context(), args, bytes.NewReader(lines(400_000)), &stdout, &stderr) }()
			require.Eventually(t, func() bool { return strings.Count(stdout.String(), ".") > 5000 }, waitLimit, time.Millisecond)
			s.Kill()
			require.Equal(t, 1, <-exit)
			require.Contains(t, stderr.String(), "6: network error")

			s = ktproc.Start(t, o)
			listing := command(t, "", "list", "-port", strconv.Itoa(s.Port), "-pv")
			require.Zero(t, listing.exit, listing.stderr)
			have := strings.SplitAfter(listing.stdout, "\n")
			acknowledged := strings.Count(stdout.String(), ".")
			require.Greater(t, len(have), acknowledged)
			for i := range acknowledged {
				require.Equal(t, fmt.Sprintf("%06d\tvalue of %d\n", i, i), have[i])
			}
			s.Stop(t)
		})
	}
}
