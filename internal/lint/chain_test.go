package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// longest is how many packages the longest chain of imports has at most, from a command down to a
// leaf. Whoever reads a package has to know what is below it.
const longest = 9

func TestChainsOfImportsAreShort(t *testing.T) {
	imports := map[string][]string{}
	for _, p := range load(t) {
		for _, f := range p.code {
			imports[p.path] = append(imports[p.path], f.imports()...)
		}
	}
	var worst []string
	for path := range imports {
		if c := chain(path, imports, map[string][]string{}); len(c) > len(worst) {
			worst = c
		}
	}
	require.LessOrEqual(t, len(worst), longest, strings.Join(worst, " > "))
}

// chain returns the longest chain of imports below a package, the package first. Go has no cycles.
func chain(path string, imports, known map[string][]string) []string {
	if c, ok := known[path]; ok {
		return c
	}
	var below []string
	for _, i := range imports[path] {
		if c := chain(i, imports, known); len(c) > len(below) {
			below = c
		}
	}
	known[path] = append([]string{path}, below...)
	return known[path]
}

// wide is how many columns a comment may have, but for tables and drawings; a tab counts as four.
const wide = 100

// Comments are read beside the code, so they are as narrow as the code.
func TestCommentsAreNarrow(t *testing.T) {
	var findings []string
	for _, p := range load(t) {
		for _, f := range p.code {
			findings = append(findings, wideComments(f)...)
		}
	}
	forbid(t, "comments of more than 100 columns", findings)
}

func wideComments(f *file) (findings []string) {
	for _, g := range f.Comments {
		for _, c := range g.List {
			n := f.fset.Position(c.Pos()).Line
			line := strings.ReplaceAll(f.line(n), "\t", "    ")
			own := strings.HasPrefix(strings.TrimSpace(line), "//") && !strings.HasPrefix(c.Text, "//go:")
			drawn := strings.HasPrefix(c.Text, "//\t") // tables and drawings cannot be wrapped
			if own && !drawn && len([]rune(line)) > wide {
				findings = append(findings, f.at(c))
			}
		}
	}
	return findings
}

// A linter is told why it is wrong by its own words (//lint:ignore, //lint:sleep), which others check.
func TestNoMarksThatNobodyReads(t *testing.T) {
	const mark = "//" + "nolint"
	var findings []string
	for _, p := range load(t) {
		for _, f := range slices.Concat(p.code, p.tests) {
			for i, line := range f.lines {
				if strings.Contains(string(line), mark) {
					findings = append(findings, fmt.Sprintf("%s:%d", f.path, i+1))
				}
			}
		}
	}
	forbid(t, "marks for a linter that is not run", findings)
}

func TestWideCommentsAreFound(t *testing.T) {
	f, err := parseText("x.go", []byte("package x\n\n// "+strings.Repeat("x", 98)+"\n\n// "+strings.Repeat("y", 97)+"\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"x.go:3"}, wideComments(f))
}
