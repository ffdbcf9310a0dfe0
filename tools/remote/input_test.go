package remote_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

func TestImportOfCompressedFiles(t *testing.T) {
	for name, pack := range map[string]func(io.Writer) io.WriteCloser{
		"in.tsv.gz": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"in.tsv.zst": func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w)
			require.NoError(t, err)
			return z
		},
	} {
		clear(t)
		path := filepath.Join(t.TempDir(), name)
		f, err := os.Create(path)
		require.NoError(t, err)
		z := pack(f)
		_, err = io.WriteString(z, "a\t1\nb\t2\n")
		require.NoError(t, err)
		require.NoError(t, z.Close())
		require.NoError(t, f.Close())
		require.Equal(t, ".. (2)\n", succeed(t, "", "import", "-db", "tree", path))
		require.Equal(t, map[string]string{"a": "1", "b": "2"}, listed(t), name)

		require.NoError(t, os.WriteFile(path, []byte("not compressed"), 0o600))
		r := command(t, "", at("import", path)...)
		require.Equal(t, 1, r.exit)
		require.Contains(t, r.stderr, name)
	}
}
