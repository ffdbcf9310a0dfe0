package compat

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// recordings is where the recordings come from; testdata is a copy.
const recordings = "../../shared/golden"

// TestCopies compares the copy with the recordings where they are at hand.
func TestCopies(t *testing.T) {
	if _, err := os.Stat(recordings); err != nil {
		t.Skipf("the recordings are not beside this module (%s), testdata is used as it is", recordings)
	}
	for _, pattern := range []string{"http/*.jsonl", "binary/*.jsonl", "kt-servers.json"} {
		require.Equal(t, contents(t, recordings, pattern), contents(t, "testdata", pattern))
	}
	for _, file := range append(cliFiles(), "cli/ktutilmgr-relog-after-recover") {
		require.Equal(t, contents(t, recordings, file+".jsonl"), contents(t, "testdata", file+".jsonl"))
	}
	require.Equal(t, contents(t, recordings, "ulog/main/ulog/*.ulog"), contents(t, "testdata", "ulog/*.ulog"))
	require.Equal(t, contents(t, recordings, "snapshot/zlib/*.ktss"), contents(t, "testdata", "snapshot/*.ktss"))
}

// contents returns what files have in them.
func contents(t *testing.T, dir, pattern string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	all := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		all[filepath.Base(name)] = string(data)
	}
	return all
}
