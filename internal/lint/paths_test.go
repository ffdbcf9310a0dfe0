package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A page that names a file which is not there sends its reader away. TestPagesNameFilesThatAreThere
// looks at the paths in backquotes; a name without a folder may be anywhere.
func TestPagesNameFilesThatAreThere(t *testing.T) {
	known := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		known[d.Name()] = true
		return err
	}))
	var findings []string
	for _, page := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		for _, path := range namedPaths(string(text)) {
			matches, err := filepath.Glob(filepath.Join(root, path))
			require.NoError(t, err)
			if len(matches) == 0 && !known[path] {
				findings = append(findings, page+": "+path)
			}
		}
	}
	forbid(t, "files and folders that are not there", findings)
}

// namedPaths returns what stands in backquotes and looks like a file or folder of this module.
func namedPaths(text string) (paths []string) {
	looks := regexp.MustCompile(`^[a-z*][\w*/]*(/[\w*.]+|\.go|\.md)$`)
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
		for _, path := range strings.Split(m[1], ", ") {
			if looks.MatchString(path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

func TestNamedPaths(t *testing.T) {
	require.Equal(t, []string{"db/owe.go", "item.go", "services/*/records.go", "tools/cli"},
		namedPaths("`db/owe.go`, `item.go` and `services/*/records.go` in `tools/cli`, `/rpc/` or `-bgs` or `Conn.Out`"))
}
