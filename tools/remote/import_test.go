package remote_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/tools/remote"
)

const waitLimit = 30 * time.Second

// protocols are the ways that import can go.
var protocols = map[string][]string{"text": {"-db", "tree"}, "binary": {"-bin", "-db", "1"}}

func TestImportKeepsTheOrderOfEachKey(t *testing.T) {
	for name, options := range protocols {
		clear(t)
		rng := rand.New(rand.NewPCG(1, 2))
		want := map[string]string{}
		var in strings.Builder
		for i := range 20_000 {
			key, value := fmt.Sprint("key", rng.IntN(3000)), fmt.Sprint("value", i)
			if rng.IntN(3) == 0 {
				delete(want, key)
				fmt.Fprintf(&in, "%s\n", key)
				continue
			}
			want[key] = value
			fmt.Fprintf(&in, "%s\t%s\n", key, value)
		}
		out := succeed(t, in.String(), "import", options...)
		require.Equal(t, 20_000, strings.Count(out, "."), name)
		require.True(t, strings.HasSuffix(out, ". (20000)\n"), name)
		require.Equal(t, want, listed(t), name)
	}
}

// listed returns the records of the tree database.
func listed(t *testing.T) map[string]string {
	t.Helper()
	have := map[string]string{}
	for line := range strings.Lines(succeed(t, "", "list", "-db", "tree", "-pv")) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		have[key] = value
	}
	return have
}

func TestImportOfOddLines(t *testing.T) {
	large := strings.Repeat("0123456789", 300_000)
	for name, options := range protocols {
		clear(t)
		in := "a\r\tb\x00c\r\n" + "\tempty key\n" + "three\tcolumns\there\n" + "empty value\t\n" + "gone\tx\n" + "gone\n" + "large\t" + large + "\nend\tx"
		out := succeed(t, in, "import", options...)
		require.Equal(t, "........ (8)\n", out, name)
		require.Equal(t, map[string]string{"a": "bc", "": "empty key", "empty value": "", "large": large, "end": "x"}, listed(t), name)
	}
	require.Empty(t, succeed(t, "", "import"))
	require.Equal(t, strings.Repeat(".", 50)+" (50)\n", succeed(t, strings.Repeat("x\n", 50), "import"))
}

func TestImportOfAFileWithExpiration(t *testing.T) {
	clear(t)
	file := filepath.Join(t.TempDir(), "ff.tsv") // with -sx the name stays what it is
	require.NoError(t, os.WriteFile(file, []byte("6b\t76\n"), 0o600))
	for _, options := range protocols {
		succeed(t, "", "import", append(options, "-sx", "-xt", "-4102444800", file)...)
		require.Equal(t, "v\t4102444800\n", succeed(t, "", "get", "-db", "tree", "-pt", "k"))
		succeed(t, "", "remove", "-db", "tree", "k")
	}
}

// Whoever writes into a pipe line by line sees each line stored at once.
func TestImportDoesNotWaitForMoreLines(t *testing.T) {
	for _, options := range protocols {
		clear(t)
		in, feed := io.Pipe()
		var stdout, stderr output
		exit := make(chan int, 1)
		go func() { exit <- remote.Main(t.Context(), at("import", options...), in, &stdout, &stderr) }()
		for i := range 3 {
			_, err := fmt.Fprintf(feed, "key%d\tvalue\npart", i)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return strings.Count(stdout.String(), ".") == i+1 }, waitLimit, time.Millisecond)
			require.Contains(t, listed(t), fmt.Sprint(strings.Repeat("part", min(i, 1)), "key", i))
		}
		require.NoError(t, feed.Close())
		require.Zero(t, <-exit, stderr.String())
		require.Len(t, listed(t), 3)
	}
}

func TestImportThatFails(t *testing.T) {
	for _, options := range [][]string{{"-db", "none"}, {"-bin", "-db", "9"}} {
		r := command(t, "a\tb\n", at("import", options...)...)
		require.Equal(t, result{exit: 1, stdout: ". (1)\n",
			stderr: "ktremotemgr: DB::set failed: :" + port + ": 2: invalid operation: no such database\n"}, r)
	}
	r := command(t, "", at("import", t.TempDir())...)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, ": is a directory; name a file\n")
	r = command(t, "", at("import", "one", "two")...)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "usage")
}

// lines are records for an import that takes a while.
func lines(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%06d\tvalue of %d\n", i, i)
	}
	return b.Bytes()
}
