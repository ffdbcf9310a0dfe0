package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// writeDocs in the environment has the table of the page written instead of compared.
const writeDocs = "GOTYCOON_WRITE_DOCS"

// The tables of docs/configuration.md and README.md are that of the options: GOTYCOON_WRITE_DOCS=1
// go test ./cmd/ktserver -run TableOfOptions writes them.
func TestTableOfOptions(t *testing.T) {
	requireTable(t, "../../docs/configuration.md", "## All options\n\n", "", tableOfOptions(newOptions()))
}

func TestTableOfOptionsInReadme(t *testing.T) {
	requireTable(t, "../../README.md", "powers of 1024.\n\n", "\n## Contributing", shortTable(newOptions()))
}

// requireTable compares what stands in a page between two texts; the second one may be the end.
func requireTable(t *testing.T, page, before, behind, want string) {
	t.Helper()
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(content), before)
	require.True(t, found)
	table, tail := rest, ""
	if behind != "" {
		at := strings.Index(rest, behind)
		require.Positive(t, at)
		table, tail = rest[:at], rest[at:]
	}
	if os.Getenv(writeDocs) != "" {
		require.NoError(t, os.WriteFile(page, []byte(head+before+want+tail), 0o644))
		return
	}
	require.Equal(t, want, table, "%s=1 writes the table", writeDocs)
}

func tableOfOptions(o *options) string {
	var b strings.Builder
	b.WriteString("| option | table | without it | reload | |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range o.table {
		reload := ""
		if r.reload {
			reload = "yes"
		}
		usage, help := usageOf(r)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", usage, r.section, withoutIt(r), reload, help)
	}
	return b.String()
}

func shortTable(o *options) string {
	var b strings.Builder
	b.WriteString("| option | | without it |\n| --- | --- | --- |\n")
	for _, r := range o.table {
		usage, help := usageOf(r)
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", usage, help, withoutIt(r))
	}
	return b.String()
}

// usageOf returns how an option is written, and its help.
func usageOf(r *option) (usage, help string) {
	value, help := pflag.UnquoteUsage(r.o.flags.Lookup(r.name))
	help = strings.TrimSuffix(help, " (default "+r.standard+")")
	return strings.TrimRight("-"+r.name+" "+value, " "), strings.ReplaceAll(help, "|", `\|`)
}

// withoutIt returns what holds when an option is not set.
func withoutIt(r *option) string {
	if r.absent != "" {
		return r.absent
	}
	if usual := r.usual(); usual != "false" {
		return usual
	}
	return ""
}
