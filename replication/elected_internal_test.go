package replication

import (
	"fmt"
	"log/slog"
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

// A primary that was just elected takes some writes to its disk before its term begins, and clients
// wait for its followers.
func TestAFollowerComesBackSoonToAPrimaryThatIsAboutToBegin(t *testing.T) {
	pauses := func(err error) (early, late bool) {
		f := &Follower{opts: FollowerOptions{Logger: slog.New(slog.DiscardHandler)}}
		early = f.ended(t.Context(), err) < retryFirst/10
		for range 20 {
			late = f.ended(t.Context(), err) > retryFirst
		}
		return early, late
	}
	early, late := pauses(fmt.Errorf("%w: it leads term 0", errTerm))
	require.True(t, early)
	require.True(t, late, "it may never begin")
	f := &Follower{opts: FollowerOptions{Logger: slog.New(slog.DiscardHandler)}}
	for range 6 {
		f.ended(t.Context(), errTerm)
	}
	require.Less(t, f.ended(t.Context(), errRefused), 2*retryFirst, "another failure than those before")
	early, late = pauses(errRefused)
	require.False(t, early)
	require.True(t, late)
}
