package script_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Scripts cannot notice that files are read in pieces.
func TestFilesAreReadAsEver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("first\n12 third\n"+strings.Repeat("x", 200_000)), 0o600))
	h := start(t, evaluator)
	for code, want := range map[string]string{
		`local f = io.open("PATH") return f:read(), f:read("*n"), f:read(6), f:read(1), #f:read("*a"), f:read("*a"), f:read("*l"), f:read(0)`: "first 12  third \n 200000  nil nil",
		`local f = io.open("PATH") return f:read("*l", "*n", 3, "*l")`:                                                                        "first 12  th ird",
		`local f = io.open("PATH") f:read("*a") return select("#", f:read("*l", "*l")), f:read("*a", "*l")`:                                   "1  nil",
		`io.input("PATH") return io.read("*l", 2), #io.read("*a")`:                                                                            "first 200007",
		`return select("#", io.popen("echo one; echo two"):read("*l", "*a", "*l")), io.popen("echo one; echo two"):read("*l", "*a")`:          "3 one two\n",
		`return os.execute("exit 3"), os.execute("true")`:                                                                                     "1 0",
	} {
		require.Equal(t, want, h.eval(strings.ReplaceAll(code, "PATH", path)), code)
	}
}
