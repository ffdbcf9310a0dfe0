package tutorial

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// changing are the parts that differ from run to run. Each is replaced, in the output and in the
// document, before the two are compared.
var changing = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d): `), "TIME: "},
	{regexp.MustCompile(`\b(pid|fd)=\d+`), "$1=N"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "CLIENT"},
	{regexp.MustCompile(`\b0?1[2-9]\d{8}(\d{9})?\b`), "SINCE-1970"},
}

func mask(s string) string {
	for _, c := range changing {
		s = c.pattern.ReplaceAllString(s, c.by)
	}
	return s
}

// lines splits an output. Whether its last line was ended does not matter.
func lines(output string) []string {
	output = strings.TrimSuffix(output, "\n")
	if output == "" {
		return nil
	}
	return strings.Split(output, "\n")
}

// pattern returns the expression of the outputs that fit the lines shown.
func pattern(shown []string) string {
	var b strings.Builder
	for _, line := range shown {
		if line == "..." {
			b.WriteString(`(?:.*\n)*`)
			continue
		}
		quoted := regexp.QuoteMeta(mask(line))
		b.WriteString(strings.ReplaceAll(quoted, `\.\.\.`, `.*`) + `\n`)
	}
	return b.String()
}

// fits reports whether an output is the output shown.
func fits(shown []string, output string) bool {
	return regexp.MustCompile(`^` + pattern(shown) + `$`).MatchString(text(lines(output)))
}

// fitsBeginning reports whether an output begins as shown.
func fitsBeginning(shown []string, output string) bool {
	return regexp.MustCompile(`^` + pattern(shown)).MatchString(text(lines(output)))
}

// fitsSorted is fits for outputs in the order of a hash table, which is undefined.
func fitsSorted(shown []string, output string) bool {
	return fits(slices.Sorted(slices.Values(shown)), strings.Join(slices.Sorted(slices.Values(lines(output))), "\n"))
}

func text(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(mask(line) + "\n")
	}
	return b.String()
}

func TestFits(t *testing.T) {
	for _, c := range []struct {
		shown, output string
		want          bool
	}{
		{"", "", true},
		{"", "x\n", false},
		{"x", "", false},
		{"x", "x\n", true},
		{"x", "x", true},
		{"x", "x\ny\n", false},
		{"x\n...", "x\ny\nz\n", true},
		{"x\n...", "x\n", true},
		{"...\nz", "x\ny\nz\n", true},
		{"...\nz", "x\nzz\n", false},
		{"a ... c", "a b c\n", true},
		{"a ... c", "a b\nc\n", false},
		{"a.c", "abc\n", false},
		{"1795000000", "1801234567\n", true},
		{"1795000000", "180123456\n", false},
		{"1795000000", "1101234567\n", false},
		{"x 1795000000000000001", "x 1801234567000000000\n", true},
		{"2026-01-01T00:00:00.000000Z: x pid=1", "2027-11-21T06:54:42.952755+09:00: x pid=77\n", true},
		{"2026-01-01T00:00:00.000000Z: x", "x\n", false},
	} {
		require.Equal(t, c.want, fits(lines(c.shown), c.output), "%q %q", c.shown, c.output)
	}
	require.True(t, fitsBeginning([]string{"a"}, "a\nb\n"))
	require.False(t, fitsBeginning([]string{"b"}, "a\nb\n"))
	require.True(t, fitsSorted([]string{"b", "a"}, "a\nb\n"))
}

// rename makes a name in the document stand for another name. border is an expression for what is
// around both.
func (s *shell) rename(border, written, inUse string) {
	s.names.add(border, written, inUse)
	s.back.add(border, inUse, written)
}

// replacer replaces names one after the other.
type replacer struct {
	patterns []*regexp.Regexp
	by       []string
}

func (r *replacer) add(border, from, to string) {
	r.patterns = append(r.patterns, regexp.MustCompile(border+regexp.QuoteMeta(from)+border))
	r.by = append(r.by, to)
}

// Replace replaces the names in a text.
func (r *replacer) Replace(text string) string {
	for i, p := range r.patterns {
		text = p.ReplaceAllLiteralString(text, r.by[i])
	}
	return text
}
