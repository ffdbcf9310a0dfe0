package version

import (
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLine(t *testing.T) {
	b := Current()
	require.Regexp(t, `^\d+\.\d+\.\d+$`, b.Version)
	require.NotEmpty(t, b.Revision)
	require.Equal(t, "gotycoon 1.2.3 (revision abc+dirty, go1.26.8, linux/amd64)",
		Build{Version: "1.2.3", Revision: "abc+dirty", Go: "go1.26.8", System: "linux/amd64"}.String())
}

func TestRevisionOfTheToolchain(t *testing.T) {
	info := func(settings ...debug.BuildSetting) *debug.BuildInfo { return &debug.BuildInfo{Settings: settings} }
	at := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}
	require.Empty(t, ofToolchain(nil, false))
	require.Empty(t, ofToolchain(info(debug.BuildSetting{Key: "vcs.modified", Value: "true"}), true), "changed, but what?")
	require.Equal(t, "abc", ofToolchain(info(at, debug.BuildSetting{Key: "vcs.modified", Value: "false"}), true))
	require.Equal(t, "abc+dirty", ofToolchain(info(at, debug.BuildSetting{Key: "vcs.modified", Value: "true"}), true))
}

// A source tarball has no repository: "git archive" writes the revision into it. The test asks git,
// which knows the placeholders and the attribute.
func TestRevisionOfAnArchive(t *testing.T) {
	require.Empty(t, ofArchive("$Format:%H %ct$\n"))
	require.Equal(t, "abc", ofArchive("abc 1795455600\n"))
	if _, err := os.Stat("../../.git"); err != nil {
		t.Skip("git is asked in a clone")
	}
	require.Empty(t, ofArchive(archived), "placeholders must not be filled in here")
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", "../.."}, args...)...)
		out, err := cmd.Output()
		require.NoError(t, err, args)
		return strings.TrimSpace(string(out))
	}
	out := git("archive", "--worktree-attributes", "--format=tar", "HEAD", "internal/version/revision.txt")
	require.Contains(t, out, git("log", "-1", "--format=%H %ct"))
}
