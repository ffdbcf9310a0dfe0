package remote_test

import (
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/compat/ktproc"
)

// packages has the first 2,000 of 63,666 records of a real file. GOTYCOON_PACKAGES names a file
// with all of them, or any other of the same form.
const packages = "testdata/packages.tsv.gz"

// packageLines returns the lines of the file.
func packageLines(t *testing.T) []string {
	t.Helper()
	name := packages
	if other := os.Getenv("GOTYCOON_PACKAGES"); other != "" {
		name = other
	}
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	return lines
}

// packageServer is a process with an ordered database 0 and a hash database 1 in files. Its
// overlays are small, so that checkpoints run meanwhile.
func packageServer(t *testing.T, bin, dir string) *ktproc.Server {
	t.Helper()
	return ktproc.Start(t, ktproc.Options{Bin: bin, Dir: dir, DBs: []string{"a.kct", "b.kch"}, Args: []string{"-checkpoint", "256k"}})
}

// ways are the protocols an import can take.
var ways = map[string][]string{"http": nil, "binary": {"-bin"}}

// TestPackages imports a real file and reads it back in every way there is.
func TestPackages(t *testing.T) {
	in := packageLines(t)
	bin := ktproc.Build(t, "ktserver")
	for name, options := range ways {
		t.Run(name, func(t *testing.T) {
			s := packageServer(t, bin, t.TempDir())
			at := func(cmd string, args ...string) []string {
				return slices.Concat([]string{cmd, "-port", strconv.Itoa(s.Port)}, args)
			}
			for _, db := range []string{"0", "1"} {
				begin := time.Now()
				r := command(t, strings.Join(in, ""), at("import", append(options, "-db", db)...)...)
				require.Zero(t, r.exit, r.stderr)
				requireDots(t, len(in), r.stdout)
				t.Logf("import into %s: %.0f records/s", db, float64(len(in))/time.Since(begin).Seconds())
			}
			requireListed(t, in, at)
			requireMatched(t, in, at)
			requireCursor(t, in, s)
			s.Stop(t)
		})
	}
}

// requireDots looks for the dots of n lines, of which the numbers say how many.
func requireDots(t *testing.T, n int, out string) {
	t.Helper()
	require.Equal(t, n, strings.Count(out, "."))
	require.True(t, strings.HasSuffix(out, " ("+strconv.Itoa(n)+")\n"), "ends with the number of lines")
}

// requireListed compares the whole content of both databases.
func requireListed(t *testing.T, in []string, at func(string, ...string) []string) {
	t.Helper()
	want := slices.Sorted(slices.Values(in))
	begin := time.Now()
	r := command(t, "", at("list", "-pv")...)
	require.Zero(t, r.exit, r.stderr)
	t.Logf("list: %.0f records/s", float64(len(in))/time.Since(begin).Seconds())
	require.True(t, strings.Join(want, "") == r.stdout, "the ordered database in its order")

	r = command(t, "", at("list", "-db", "1", "-pv")...)
	require.Zero(t, r.exit, r.stderr)
	require.Equal(t, strings.Join(want, ""), sortLines(r.stdout))
	require.Contains(t, command(t, "", at("inform", "-db", "1")...).stdout, "count: "+strconv.Itoa(len(in))+"\n")
}

// requireMatched compares what the server finds with what we find ourselves.
func requireMatched(t *testing.T, in []string, at func(string, ...string) []string) {
	t.Helper()
	for _, db := range []string{"0", "1"} {
		for _, row := range []struct{ cmd, arg, regex string }{
			{"match", "a", "^a"}, {"match", "ab", "^ab"}, {"match", "", ""}, {"match", "no such package", "^no such package"},
			{"regex", "-(doc|dev)$", "-(doc|dev)$"}, {"regex", "^[0-9]+[a-c]", "^[0-9]+[a-c]"}, {"regex", "nowhere at all", "nowhere at all"},
		} {
			r := command(t, "", at(row.cmd, "-db", db, "--", row.arg)...)
			require.Zero(t, r.exit, r.stderr)
			require.Equal(t, keysLike(in, row.regex), sortLines(r.stdout), "%s %q", row.cmd, row.arg)
		}
	}
}

// keysLike returns the keys that an expression finds, one per line.
func keysLike(in []string, expression string) string {
	re := regexp.MustCompile(expression)
	var keys []string
	for _, line := range in {
		if key, _, _ := strings.Cut(line, "\t"); re.MatchString(key) {
			keys = append(keys, key+"\n")
		}
	}
	slices.Sort(keys)
	return strings.Join(keys, "")
}

// requireCursor reads the second half forward and the first half backward.
func requireCursor(t *testing.T, in []string, s *ktproc.Server) {
	t.Helper()
	c := client.New(s.Addr(), client.Options{})
	defer c.Close()
	want := slices.Sorted(maps.Keys(records(in)))
	middle := len(want) / 2
	forward, backward := c.DB("0").Cursor(), c.DB("0").Cursor()
	require.NoError(t, forward.JumpKey(t.Context(), want[middle]))
	require.NoError(t, backward.JumpBackKey(t.Context(), want[middle-1]))
	require.True(t, slices.Equal(want[middle:], keysOf(t, forward)), "forward")
	have := keysOf(t, backward)
	slices.Reverse(have)
	require.True(t, slices.Equal(want[:middle], have), "backward")
}

func keysOf(t *testing.T, c *client.Cursor) (keys []string) {
	t.Helper()
	for key, err := range c.Keys(t.Context()) {
		require.NoError(t, err)
		keys = append(keys, key)
	}
	return keys
}
