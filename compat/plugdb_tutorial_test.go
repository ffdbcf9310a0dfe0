package compat

import (
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
)

// TestPublishedVoidDatabase is the tutorial's master that keeps nothing and its slave that keeps everything.
func TestPublishedVoidDatabase(t *testing.T) {
	t.Parallel()
	bin, remote := ktproc.Build(t, "ktserver"), ktproc.Build(t, "ktremotemgr")
	port := func(s *ktproc.Server) string {
		_, port, err := net.SplitHostPort(s.Addr())
		require.NoError(t, err)
		return port
	}
	run := func(args ...string) (string, error) {
		out, err := exec.Command(remote, args...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	// The published command has no database name, and does not start there either.
	refused := ktproc.Launch(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), BareDBs: true,
		Args: []string{"-ulog", "0001-ulog", "-sid", "1", "-pldb", "/usr/local/libexec/ktplugdbvoid.so"}}, ktproc.FreePort(t))
	require.Equal(t, 1, refused.ExitCode(t))

	master := ktproc.Start(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), DBs: []string{"void"},
		Args: []string{"-ulog", "0001-ulog", "-sid", "1", "-pldb", "/usr/local/libexec/ktplugdbvoid.so"}})
	slave := ktproc.Start(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), DBs: []string{"casket.kch"},
		Args: []string{"-sid", "2", "-mhost", "localhost", "-mport", port(master), "-rts", "2.rts"}})

	out, err := run("set", "-port", port(master), "foo", "bar")
	require.NoError(t, err, out)
	out, err = run("get", "-port", port(master), "foo")
	require.Error(t, err)
	require.Equal(t, "ktremotemgr: DB::get failed: :"+port(master)+": 3: logical inconsistency: DB: 7: no record: no record", out)
	require.Eventually(t, func() bool {
		out, err := run("get", "-port", port(slave), "foo")
		return err == nil && out == "bar"
	}, memcLimit, 20*time.Millisecond)
	slave.Stop(t)
	master.Stop(t)
}
