package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/version"
)

// Between two releases the programs have the number of the next one. So the number is that of the
// newest release in CHANGELOG.md only while nothing is listed as unreleased.
func TestTheVersionIsThatOfTheChangelog(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	require.NoError(t, err)
	headings, parts := changes(string(text))
	require.Equal(t, "Unreleased", headings[0], "the first part of CHANGELOG.md is what comes next")
	number := version.Current().Version
	if strings.Contains(parts[0], "\n- ") {
		require.NotContains(t, headings, number, "number in internal/version/version.go: it is to be that of the next release")
		return
	}
	require.Equal(t, headings[1], number, "number in internal/version/version.go")
}

// changes returns the versions of a changelog and what stands below each.
func changes(text string) (headings, parts []string) {
	heading := regexp.MustCompile(`(?m)^## \[(.+?)\].*$`)
	for _, at := range heading.FindAllStringSubmatchIndex(text, -1) {
		headings = append(headings, text[at[2]:at[3]])
		rest := text[at[1]:]
		if next := heading.FindStringIndex(rest); next != nil {
			rest = rest[:next[0]]
		}
		parts = append(parts, rest)
	}
	return headings, parts
}

func TestChangesAreRead(t *testing.T) {
	headings, parts := changes("# Changelog\n\n## [Unreleased]\n\n- a\n\n## [1.2.0] - 2026-01-01\n\n- b\n")
	require.Equal(t, []string{"Unreleased", "1.2.0"}, headings)
	require.Equal(t, []string{"\n\n- a\n\n", "\n\n- b\n"}, parts)
}
