package httpapi

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"gotycoon/db/dberr"

	"github.com/stretchr/testify/require"
)

func TestProceduresAreSorted(t *testing.T) {
	for i := 1; i < len(procedures); i++ {
		require.Less(t, procedures[i-1].name, procedures[i].name)
	}
}

// A row without rights is about nothing: whoever adds a procedure must think about them.
func TestEveryProcedureHasItsRights(t *testing.T) {
	for _, p := range procedures {
		require.Equal(t, p.uses == usesCursor, p.need.about == aboutCursor, p.name)
		require.Equal(t, p.need.rights == 0, p.need.about == aboutNothing, p.name)
		if p.uses == usesNothing {
			require.Contains(t, []about{aboutNothing, aboutServer}, p.need.about, p.name)
		}
	}
}

func TestEveryProcedureIsExplained(t *testing.T) {
	for _, p := range procedures {
		require.NotEmpty(t, p.help, p.name)
		names := map[string]bool{}
		for _, r := range p.in {
			require.NotEmpty(t, r.help, "%s: %s", p.name, r.name)
			require.False(t, names[r.name], "%s: %s twice", p.name, r.name)
			names[r.name] = true
		}
	}
}

// writeDocs in the environment has the page written instead of compared.
const writeDocs = "GOTYCOON_WRITE_DOCS"

// The page of procedures is their table: GOTYCOON_WRITE_DOCS=1 go test ./httpapi -run
// PageOfProcedures writes it.
func TestPageOfProcedures(t *testing.T) {
	const page = "../docs/procedures.md"
	want := pageOfProcedures()
	if os.Getenv(writeDocs) != "" {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, want, string(text), "%s=1 writes the page", writeDocs)
}

const pageOpening = `# Procedures

Every procedure that can be called under ` + "`/rpc/`" + `, with the rows of its input and output: [how to call one](protocols.md#procedures).
A server explains them too: ` + "`/rpc/help`" + ` lists the names, ` + "`/rpc/help?name=set`" + ` the input of one. "Ours" is what the
original does not have. A parameter that counts "if present" counts with any value, also with ` + "`false`" + `. Rights are
those of the [access file](security.md).

Input of all procedures, where the procedure is about a database or a cursor:

`

func pageOfProcedures() string {
	var b strings.Builder
	b.WriteString(pageOpening)
	writeRows(&b, "input", commonRows)
	for _, p := range procedures {
		fmt.Fprintf(&b, "\n## %s\n\n%s%s. %s", p.name, strings.ToUpper(p.help[:1]), p.help[1:], rightOf(p.need))
		switch p.uses {
		case usesDB:
			b.WriteString(" Takes `DB`.")
		case usesCursor:
			b.WriteString(" Takes `CUR`.")
		}
		if p.expect != dberr.Success {
			fmt.Fprintf(&b, " Status 450 for: %s.", p.expect)
		}
		b.WriteByte('\n')
		for _, part := range []struct {
			title string
			rows  []row
		}{{"input", p.in}, {"output", p.out}} {
			if len(part.rows) > 0 {
				b.WriteByte('\n')
				writeRows(&b, part.title, part.rows)
			}
		}
	}
	return b.String()
}

func writeRows(b *strings.Builder, title string, rows []row) {
	fmt.Fprintf(b, "| %s | |\n| --- | --- |\n", title)
	for _, r := range rows {
		fmt.Fprintf(b, "| `%s` | %s |\n", r.name, r.help)
	}
}

func rightOf(need right) string {
	of := map[about]string{
		aboutKey: " of the key", aboutKeys: " of all keys", aboutPrefix: " of the keys with the prefix",
		aboutPart:     " of the keys with the prefix, without one of the whole database",
		aboutDatabase: " of the whole database", aboutFile: " of the whole database, with a command `admin` of the server",
		aboutCursor: " of the whole database", aboutServer: " of the whole server",
	}
	if need.about == aboutNothing {
		return "Needs no right."
	}
	return fmt.Sprintf("Needs `%s`%s.", need.rights, of[need.about])
}
