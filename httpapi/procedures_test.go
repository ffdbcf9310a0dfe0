package httpapi

import (
	"os"
	"testing"

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

// writeDocs in the environment has the pages written instead of compared.
const writeDocs = "GOTYCOON_WRITE_DOCS"

// The pages of procedures are their table: GOTYCOON_WRITE_DOCS=1 go test ./httpapi -run
// PageOfProcedures writes them.
func TestPageOfProcedures(t *testing.T) {
	table := &NewHandler(Options{}).table
	for page, want := range map[string]string{"../docs/procedures.md": table.page(), "../docs/openapi.json": table.openAPI()} {
		if os.Getenv(writeDocs) != "" {
			require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
			continue
		}
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		require.Equal(t, want, string(text), "%s=1 writes the page", writeDocs)
	}
}
