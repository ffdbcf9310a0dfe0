package timed_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

func TestImport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.kct")
	in := "a\t1\r\nb\t2\nthree\tcolumns\there\n\nb\nmissing\nlast\tno\x00 end"
	r := command(in, "import", path)
	require.Equal(t, result{stdout: "....... (7)\n"}, r)
	require.Equal(t, "a\t1\nlast\tno end\n", succeed(t, "list", "-pv", path))
	require.Equal(t, result{stdout: ". (1)\n"}, command("6162\t6364\n", "import", "-sx", "-xt", "-4102444800", path))
	require.Equal(t, "cd\t4102444800\n", succeed(t, "get", "-pt", path, "ab"))
	lines := strings.Repeat("k\tv\n", 60)
	require.Equal(t, strings.Repeat(".", 50)+" (50)\n.......... (60)\n", command(lines, "import", path).stdout)
	require.Contains(t, fail(t, "import", path, "nofile"), "nofile: open error\nkttimedmgr: open nofile: no such file or directory\n")
}

func TestImportOfCompressedFiles(t *testing.T) {
	for name, pack := range map[string]func(io.Writer) io.WriteCloser{
		"in.gz": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"in.zst": func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w)
			require.NoError(t, err)
			return z
		},
	} {
		var packed bytes.Buffer
		w := pack(&packed)
		_, err := io.WriteString(w, "a\t1\n")
		require.NoError(t, err)
		require.NoError(t, w.Close())
		dir := t.TempDir()
		file, path := filepath.Join(dir, name), filepath.Join(dir, "a.kct")
		require.NoError(t, os.WriteFile(file, packed.Bytes(), 0o600))
		require.Equal(t, ". (1)\n", succeed(t, "import", path, file))
		require.Equal(t, "1\n", succeed(t, "get", path, "a"))
	}
}

func TestMerge(t *testing.T) {
	into, from := database(t, "into.kct", "a", "1"), database(t, "from.kch", "b", "3")
	succeed(t, "set", "-xt", "-4102444800", from, "a", "2")
	succeed(t, "set", "-xt", "-1", from, "dead", "x")
	merged := func(args ...string) string {
		require.Equal(t, " (end)\n2 records were merged successfully\n", succeed(t, append([]string{"merge"}, args...)...))
		return succeed(t, "list", "-pv", "-pt", into)
	}
	const never = "1099511627775"
	require.Equal(t, "a\t1\t"+never+"\n", merged("-rep", into, database(t, "x.kct", "y", "1", "z", "2")))
	require.Equal(t, "a\t1\t"+never+"\nb\t3\t"+never+"\n", merged("-add", into, from))
	require.Equal(t, "a\t12\t4102444800\nb\t33\t"+never+"\n", merged("-app", into, from))
	require.Equal(t, "a\t2\t4102444800\nb\t3\t"+never+"\n", merged(into, from))
	r := command("", "merge", into, from, filepath.Join(t.TempDir(), "no.kct"))
	require.Equal(t, " (end)\n", r.stdout)
	require.Contains(t, r.stderr, "kttimedmgr: DB::open failed: : 3: no repository: open failed (file not found)\nkttimedmgr: ")
}

func TestCopy(t *testing.T) {
	path := database(t, "a.kct", "a", "1")
	lines := new(strings.Builder)
	for i := range 20_000 {
		lines.WriteString(strings.Repeat("x", i%7) + "\t" + strings.Repeat("v", 300) + "\n")
	}
	require.Zero(t, command(lines.String(), "import", path).exit)
	to := filepath.Join(t.TempDir(), "copy.kct")
	require.Regexp(t, `^\.* \(end\)\n\d+ blocks were merged successfully\n$`, succeed(t, "copy", path, to))
	require.Equal(t, succeed(t, "list", "-pv", path), succeed(t, "list", "-pv", to))
	require.Regexp(t, "blocks were merged", succeed(t, "copy", path, to), "in place of the first copy")
	require.Contains(t, fail(t, "copy", path, path), "the database itself")
	require.Contains(t, fail(t, "copy", ":", to), "DB::copy failed: :: 1: not implemented")
	require.Contains(t, fail(t, "copy", path, filepath.Join(t.TempDir(), "no", "copy.kct")), "DB::copy failed: "+path+": 9: system error")
}
