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
	for _, page := range pages {
		for _, link := range links(t, page) {
			target, section, _ := strings.Cut(link, "#")
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			_, err := os.Stat(path)
			require.NoError(t, err, "%s: (%s)", page, link)
			if section != "" {
				require.Contains(t, sections(t, path), section, "%s: (%s)", page, link)
			}
		}
	}
}

// The packages have all pages to which their pages lead.
func TestLinksInPackages(t *testing.T) {
	t.Parallel()
	recipe, err := os.ReadFile(filepath.Join(root, "packaging/nfpm.yaml"))
	require.NoError(t, err)
	packaged := map[string]string{} // from places below /usr/share/doc/gotycoon to files here
	for _, m := range regexp.MustCompile(`\{src: "?(?:\$\{STAGE\}/)?([^",]+)"?, dst: /usr/share/doc/gotycoon/([^,]*),`).FindAllStringSubmatch(string(recipe), -1) {
		found, err := filepath.Glob(filepath.Join(root, m[1]))
		require.NoError(t, err)
		for _, file := range found {
			place := m[2]
			if place == "" || strings.HasSuffix(place, "/") {
				place += filepath.Base(file)
			}
			packaged[place] = file
		}
	}
	require.Contains(t, packaged, "docs/install.md")
	require.Contains(t, packaged, "CHANGELOG.md")
	for place, file := range packaged {
		if filepath.Ext(file) != ".md" {
			continue
		}
		for _, link := range links(t, file) {
			if target, _, _ := strings.Cut(link, "#"); target != "" {
				require.Contains(t, packaged, filepath.Join(filepath.Dir(place), target), "%s: (%s)", place, link)
			}
		}
	}
}

// links are those of a page that lead to other pages of the project, or to a section.
func links(t *testing.T, page string) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(withoutCode(t, page), -1) {
		if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") {
			all = append(all, m[1])
		}
	}
	return all
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
