package remote_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// A hold keeps files of the log until it is released; list says who needs files.
func TestUlog(t *testing.T) {
	dir := t.TempDir()
	port := startServer(t, filepath.Join(dir, "ulog"), ":")
	run := func(args ...string) result {
		return command(t, "", append([]string{"ulog", "-port", port}, args...)...)
	}
	held := run("hold", "nightly")
	require.Zero(t, held.exit, held.stderr)
	require.Regexp(t, `^\d{19}\n$`, held.stdout)
	list := run("list")
	require.Zero(t, list.exit, list.stderr)
	require.Regexp(t, `^hold\t`+strings.TrimSpace(held.stdout)+`\t0\t0\t20\d\d-\S+Z\tthe hold nightly\n$`, list.stdout)
	list = run("-json", "list")
	require.Contains(t, list.stdout, `"name":"nightly"`)

	gone := run("-ts", "1", "-ttl", "60", "hold", "old")
	require.Zero(t, gone.exit, "the log has its beginning")
	c := client.New("127.0.0.1:"+port, client.Options{})
	defer c.Close()
	holds, err := c.UlogHolds(t.Context())
	require.NoError(t, err)
	require.Len(t, holds, 2)
	require.Equal(t, client.LogHold{Kind: "hold", Name: "old", What: "the hold old", From: 1, Since: holds[0].Since, Until: holds[0].Until}, holds[0])
	require.InDelta(t, 60, holds[0].Until.Sub(holds[0].Since).Seconds(), 1)
	require.NoError(t, c.UlogRelease(t.Context(), "old"))

	released := run("release", "nightly")
	require.Zero(t, released.exit, released.stderr)
	released = run("release", "nightly")
	require.Equal(t, 1, released.exit)
	require.Contains(t, released.stderr, "DB::ulog_release failed")
	require.Empty(t, run("list").stdout)
	for _, args := range [][]string{{}, {"hold"}, {"release"}, {"list", "x"}, {"keep", "x"}, {"-ts", "x", "hold", "a"}, {"hold", "a b"}, {"-ttl", "0", "hold", "a"}} {
		wrong := run(args...)
		require.Equal(t, 1, wrong.exit, fmt.Sprint(args))
		require.NotEmpty(t, wrong.stderr)
	}
}
