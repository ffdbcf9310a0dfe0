// Package accesstest has what tests of servers with an access file need.
package accesstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/access"
)

// Guard returns a guard whose access file has these lines.
func Guard(t *testing.T, lines ...string) *access.Guard {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	g, err := access.Open(access.Options{Path: path})
	require.NoError(t, err)
	t.Cleanup(g.Close)
	return g
}
