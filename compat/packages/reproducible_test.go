package packages

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPackagesAreReproducible packs the same files twice: from two folders, where they have other
// times and modes, in other time zones. The packages must be the same. That compilers make the same
// programs is tried by "make reproducible", which takes minutes.
func TestPackagesAreReproducible(t *testing.T) {
	one, other := pack(t, 0o022, time.Unix(1, 0), "UTC"), pack(t, 0o077, time.Now(), "Asia/Tokyo")
	for _, pattern := range []string{"*.deb", "*.rpm", "*.tar.gz"} {
		require.Equal(t, packed(t, one, pattern), packed(t, other, pattern), pattern)
	}
}

// pack makes all packages of a few files in a new folder, and returns the folder.
func pack(t *testing.T, mask int, changed time.Time, zone string) string {
	t.Helper()
	defer syscall.Umask(syscall.Umask(mask))
	dir := t.TempDir()
	stage := filepath.Join(dir, "stage-amd64")
	for _, file := range []string{
		"bin/ktserver", "man/ktserver.1.gz", "bash/ktserver", "zsh/_ktserver", "fish/ktserver.fish",
		"LICENSE", "NOTICE", "CHANGELOG.md", "copyright", "sbom.cdx.json",
	} {
		path := filepath.Join(stage, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(file), 0o777))
		require.NoError(t, os.Chtimes(path, changed, changed))
	}
	// The files of the stage are not made anew: -o.
	cmd := command(t, "make", "-o", "stage", "deb", "rpm", "release", "DIST="+dir, "ARCH=amd64", "VERSION=1.2.3")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1795454216", "TZ="+zone)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

// packed returns the hash of the only file that matches.
func packed(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	require.Len(t, found, 1)
	content, err := os.ReadFile(found[0])
	require.NoError(t, err)
	return fmt.Sprintf("%x", sha256.Sum256(content))
}
