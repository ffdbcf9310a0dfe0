package remote_test

import (
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
)

// serverBuilt is the server's binary for tests that share one: linking takes longer than they do.
var serverBuilt struct {
	sync.Once
	dir, path string
}

// elsewhere is a test with another temporary directory.
type elsewhere struct {
	testing.TB
	dir string
}

// TempDir is the directory.
func (e elsewhere) TempDir() string { return e.dir }

// serverBin returns the path of the server's binary.
func serverBin(t *testing.T) string {
	t.Helper()
	serverBuilt.Do(func() {
		var err error
		serverBuilt.dir, err = os.MkdirTemp("", "ktserver-")
		require.NoError(t, err)
		serverBuilt.path = ktproc.Build(elsewhere{t, serverBuilt.dir}, "ktserver")
	})
	require.NotEmpty(t, serverBuilt.path)
	return serverBuilt.path
}
