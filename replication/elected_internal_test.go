package replication

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
)

// A member with such a database must not become the primary, and counts as one that knows nothing.
func TestStandingSaysThatADatabaseHasLostItsData(t *testing.T) {
	lost := place{parts: []part{{db: 0}}} // recall found it empty
	require.True(t, lost.standing().Partial)
	ordered := place{parts: []part{{db: 0}}, amends: amendsCopies}
	require.False(t, ordered.standing().Partial, "everything is still here")
	services := place{parts: []part{{db: db.ServicesIndex}}}
	require.False(t, services.standing().Partial, "a member that has never followed")
}
