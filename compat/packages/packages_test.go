package packages

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/needs"
)

const root = "../.."

// longest is the limit of building the packages, and of the life of one.
const longest = 10 * time.Minute

// TestDebianPackage installs the package, starts the server as the unit does, upgrades the package,
// removes and purges it, and installs it again. No record may be lost, and no line of the
// configuration that the user has changed; everything that tells a version tells that of the
// package. All this happens in a copy of the file system that no
// other process sees, without network.
func TestDebianPackage(t *testing.T) {
	needsRoot(t)
	for program, debian := range map[string]string{
		"dpkg": "dpkg", "unshare": "util-linux", "chroot": "coreutils", "runuser": "util-linux", "systemd-sysusers": "systemd", "make": "make", "curl": "curl",
	} {
		needs.Program(t, debian, program)
	}
	dir := t.TempDir()
	makePackage(t, "0.1.0", dir)
	makePackage(t, "0.1.1", dir)
	script, err := filepath.Abs("life.sh")
	require.NoError(t, err)
	out, err := command(t, "unshare", "--mount", "--pid", "--net", "--fork", "sh", "-eu", script, dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "the package has lived well\n")
}

// needsRoot skips the test where it has not the rights that it needs.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("installing a package needs root")
	}
	if out, err := command(t, "unshare", "--mount", "--pid", "--net", "--fork", "true").CombinedOutput(); err != nil {
		t.Skipf("a file system of the test's own is needed: %s", out)
	}
}

// makePackage builds the package of a version and moves it to dir.
func makePackage(t *testing.T, version, dir string) {
	t.Helper()
	cmd := command(t, "make", "deb", "VERSION="+version, "DIST="+dir)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.WaitDelay = longest
	return cmd
}

// The unit is one that the service manager understands.
func TestUnit(t *testing.T) {
	needs.Program(t, "systemd", "systemd-analyze")
	text, err := os.ReadFile(filepath.Join(root, "packaging/systemd/gotycoon.service"))
	require.NoError(t, err)
	// The command of the unit and its manual page are not installed here.
	unit := filepath.Join(t.TempDir(), "gotycoon.service")
	require.NoError(t, os.WriteFile(unit, bytes.Replace(text, []byte("/usr/bin/ktserver"), []byte("/bin/true"), 1), 0o644))
	out, err := command(t, "systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out))
}
