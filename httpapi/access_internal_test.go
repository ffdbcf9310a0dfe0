package httpapi

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A procedure that nobody has thought about would need the right to do everything, but somebody shall think.
func TestEveryProcedureHasItsRights(t *testing.T) {
	for _, p := range procedures {
		need, known := procedureRights[p.name]
		require.True(t, known, p.name)
		require.Equal(t, p.uses == usesCursor, need.about == aboutCursor, p.name)
		require.Equal(t, need.rights == 0, need.about == aboutNothing, p.name)
		if p.uses == usesNothing {
			require.Contains(t, []about{aboutNothing, aboutServer}, need.about, p.name)
		}
	}
	require.Len(t, procedureRights, len(procedures))
}
