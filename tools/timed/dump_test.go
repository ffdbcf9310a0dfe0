package timed_test

import (
	"fmt"
	"gotycoon/compat/recordings"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDumpAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.kct")
	lines := new(strings.Builder)
	for i := range 3000 {
		fmt.Fprintf(lines, "key%05d\t%s\n", i, strings.Repeat("v", i%300))
	}
	require.Zero(t, command(lines.String(), "import", path).exit)
	succeed(t, "set", "-xt", "-4102444800", path, "", "empty key")
	succeed(t, "set", "-xt", "-1", path, "dead", "x")
	file := filepath.Join(t.TempDir(), "a.kcss")
	require.Equal(t, "... (end)\n3002 records were dumped successfully\n", succeed(t, "dump", path, file))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(content), succeed(t, "dump", path), "to standard output")

	to := database(t, "b.kct", "other", "stays")
	require.Equal(t, "... (end)\n3002 records were loaded successfully\n", succeed(t, "load", to, file))
	require.Equal(t, succeed(t, "list", "-pv", "-pt", path)+"other\tstays\t1099511627775\n", succeed(t, "list", "-pv", "-pt", to))
	require.Zero(t, command(string(content), "load", "-otr", to).exit)
	require.Equal(t, succeed(t, "list", "-pv", "-pt", path), succeed(t, "list", "-pv", "-pt", to))
}

func TestLoadOfWhatIsNoSnapshot(t *testing.T) {
	path := database(t, "a.kct", "k", "v")
	for _, in := range []string{"", "KC", "KCSS\n\x01", "nonsense", "KTSS\n\x00short"} {
		r := command(in, "load", "-otr", path)
		require.Equal(t, 1, r.exit, "%q", in)
		require.Contains(t, r.stderr, "standard input: ")
		require.Equal(t, "k\n", succeed(t, "list", path), "the file was emptied for nothing")
	}
	whole := "KCSS\n\x00\x00\x01\x06a\xff\xff\xff\xff\xff1\x00\x01\x06b\xff\xff\xff\xff\xff2\xff"
	for n := 6; n < len(whole); n++ {
		r := command(whole[:n], "load", path)
		require.Equal(t, 1, r.exit, "%d bytes", n)
		require.Contains(t, r.stderr, "DB::load_snapshot failed: "+path+": 5: broken file: after ")
	}
	require.Zero(t, command(whole, "load", path).exit)
	require.Equal(t, "a\nb\nk\n", succeed(t, "list", path))
}

func TestDumpKeepsTheOldSnapshotWhenItFails(t *testing.T) {
	path := database(t, "a.kct", "k", "v")
	dir := filepath.Join(t.TempDir(), "dir")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "in the way"), 0o700))
	require.Contains(t, fail(t, "dump", path, dir), "DB::dump_snapshot failed: "+path+": 9: system error")
	require.NoFileExists(t, dir+".new")
}

func TestInformOfDamagedSnapshots(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "00000000.ktss"), []byte("KTSS\n\x00short"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "00000012.KTSS"), []byte("KTSS\n\x00"+strings.Repeat("\x00", 27)+"\x07"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "readme.ktss"), nil, 0o600))
	require.Equal(t, result{0, "12\t0\t0\t7\n", "kttimedmgr: warning: 00000000.ktss is no snapshot\n"}, command("", "bgsinform", dir))
	require.Equal(t, "kttimedmgr: nofile: no such file or directory\n", fail(t, "bgsinform", "nofile"))
}

// TestLoadOfAServersSnapshots loads what the original has written with each of its compressors.
func TestLoadOfAServersSnapshots(t *testing.T) {
	golden := recordings.Dir(t, "snapshot")
	for _, kind := range []string{"none", "zlib", "lzo", "lzma", "lzma-unsupported-build"} {
		for _, index := range []string{"0", "1"} {
			want, err := os.ReadFile(filepath.Join(golden, kind, "db"+index+".hex.tsv"))
			require.NoError(t, err)
			// The list was made by ktremotemgr, which shows another number for "never".
			lines := strings.Split(strings.ReplaceAll(string(want), "9223372036854775807", "1099511627775"), "\n")
			path := filepath.Join(t.TempDir(), "a.kct")
			succeed(t, "load", path, filepath.Join(golden, kind, "0000000"+index+".ktss"))
			have := strings.Split(succeed(t, "list", "-pv", "-px", "-pt", path), "\n")
			slices.Sort(lines)
			slices.Sort(have)
			require.True(t, slices.Equal(lines, have), "%s %s", kind, index)
		}
	}
}
