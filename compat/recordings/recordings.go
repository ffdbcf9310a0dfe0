// Package recordings has the files that the original wrote, for tests: update logs, snapshots, and
// what it sent to followers. They are the specification of these formats.
//
//	ulog         segments of several servers, cut and damaged ones too; what is recovered of each
//	snapshot     snapshots with every compressor, with lists of the records in them
//	replication  streams that followers were sent, byte for byte, and the logs behind them
//
// A folder has a README.md or text files beside the recordings, which tell how each was made. The
// folders are kept packed, because the hundred damaged logs are nearly the same.
//
// Recorded conversations are in the folders named testdata of the packages that replay them.
package recordings

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed *.tar.gz
var packed embed.FS

// Dir unpacks the recordings with a name ("ulog", "snapshot", "replication") into a folder that is
// removed when the test ends, and returns the folder.
func Dir(t testing.TB, name string) string {
	t.Helper()
	data, err := packed.ReadFile(name + ".tar.gz")
	require.NoError(t, err)
	plain, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	parent := t.TempDir()
	for files := tar.NewReader(plain); ; {
		h, err := files.Next()
		if err == io.EOF {
			return filepath.Join(parent, name)
		}
		require.NoError(t, err)
		path := filepath.Join(parent, h.Name)
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(path, 0o700))
			continue
		}
		content, err := io.ReadAll(files)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
}
