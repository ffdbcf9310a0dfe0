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

// The table of docs/configuration.md is that of the options: GOTYCOON_WRITE_DOCS=1 go test ./cmd/ktserver -run TableOfOptions writes it.
func TestTableOfOptions(t *testing.T) {
	const page, heading = "../../docs/configuration.md", "## All options\n\n"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, table, found := strings.Cut(string(text), heading)
	require.True(t, found)
	want := tableOfOptions(newOptions())
	if os.Getenv(writeDocs) != "" {
		require.NoError(t, os.WriteFile(page, []byte(before+heading+want), 0o644))
		return
	}
	require.Equal(t, want, table, "%s=1 writes the table", writeDocs)
}

func tableOfOptions(o *options) string {
	var b strings.Builder
	b.WriteString("| option | table | default | reload | |\n| --- | --- | --- | --- | --- |\n")
	o.flags.VisitAll(func(f *pflag.Flag) {
		value, help := pflag.UnquoteUsage(f)
		section, reload := "", ""
		if !commandLineOnly(f.Name) {
			section = o.section(f.Name)
			if o.reloadable(f.Name) {
				reload = "yes"
			}
		}
		standard := defaultOf(f)
		if standard == "false" {
			standard = ""
		}
		help = strings.TrimSpace(strings.Replace(help, "(default "+standard+")", "", 1))
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", strings.TrimRight("-"+f.Name+" "+value, " "), section, standard, reload,
			strings.ReplaceAll(help, "|", `\|`))
	})
	return b.String()
}
