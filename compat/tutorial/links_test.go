package tutorial

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every link between the pages of the project leads to a file that is there, and to a section that
// the page has.
func TestLinks(t *testing.T) {
	t.Parallel()
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "compat/*.md", "client/*.md", "packaging/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	require.Greater(t, len(pages), 30)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(withoutCode(t, page), -1) {
			target, section, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			_, err := os.Stat(path)
			require.NoError(t, err, "%s: (%s)", page, m[1])
			if section != "" {
				require.Contains(t, sections(t, path), section, "%s: (%s)", page, m[1])
			}
		}
	}
}

// withoutCode returns a page without what it shows as code.
func withoutCode(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	boxes := regexp.MustCompile("(?ms)^ *```.*?^ *```")
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(boxes.ReplaceAllString(string(text), ""), "code")
}

// sections are the names by which links know the headings of a page: in lower case, with hyphens
// for blanks and without punctuation.
func sections(t *testing.T, page string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	boxes := regexp.MustCompile("(?ms)^```.*?^```")
	marks := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ +(.*)$`).FindAllStringSubmatch(boxes.ReplaceAllString(string(text), ""), -1) {
		names = append(names, strings.ReplaceAll(marks.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), ""), " ", "-"))
	}
	return names
}
