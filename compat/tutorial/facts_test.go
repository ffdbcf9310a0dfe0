package tutorial

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// compareOptions compares what README.md says of the options with what the server says.
func compareOptions(t *testing.T, p programs) {
	help, err := exec.Command(p.server, "--help").Output()
	require.NoError(t, err)
	_, table, found := strings.Cut(readme(t), "## Options of ktserver\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")

	require.Equal(t, words(regexp.MustCompile(`(?m)^  -([\w-]+) `), string(help)), optionsOf(table), "the table of options")
}

// optionsOf returns the options in the first column of a table.
func optionsOf(table string) []string {
	var options []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			options = append(options, words(regexp.MustCompile("`-([\\w-]+)"), cells[1])...)
		}
	}
	slices.Sort(options)
	return options
}

func words(pattern *regexp.Regexp, text string) []string {
	var found []string
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	slices.Sort(found)
	return found
}

// Files, sections and targets of make that README.md speaks of exist.
func TestReadmeTargets(t *testing.T) {
	t.Parallel()
	text := readme(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	targets := words(regexp.MustCompile(`(?m)^make (\w+)`), text)
	require.NotEmpty(t, targets)
	for _, target := range targets {
		require.Regexp(t, `(?m)^`+target+`:`, string(makefile))
	}
}
