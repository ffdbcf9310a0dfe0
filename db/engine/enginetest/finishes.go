package enginetest

import (
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
)

// A finish says whether it has ended the claim, however often it is repeated, and whether the term
// lasts or not. That there is no claim proves nothing.
func testFinishedClaims(h *host) {
	a, b := h.claimant("a"), h.claimant("b")
	for name, one := range map[string]struct {
		before func(r *engine.Claimed) // the finish
		want   error
	}{
		"of a claim":                        {func(*engine.Claimed) {}, nil},
		"of a claim whose key has a record": {func(*engine.Claimed) { b.write(set("k", "new", engine.Any)) }, nil},
		"of a claim that was given back":    {func(r *engine.Claimed) { require.False(h, a.giveBack(r, "k")) }, engine.ErrUnclaimed},
		"of what was never claimed":         {func(r *engine.Claimed) { require.NoError(h, a.finish(r)); r.ID, r.End = a.next(), engine.GroupID{} }, engine.ErrUnclaimed},
		"of what another call has finished": {func(r *engine.Claimed) { require.NoError(h, a.finish(r)); r.End = engine.GroupID{} }, engine.ErrUnclaimed},
	} {
		a.write(set("k", "v", engine.Any))
		r := a.take("k", "")
		require.NotNil(h, r, name)
		one.before(r)
		left := a.value("k")
		for range 3 {
			require.ErrorIs(h, a.finish(r), one.want, name)
		}
		a.giveUp()
		<-a.lost
		require.ErrorIs(h, a.finish(r), one.want, "%s: the term has ended", name)
		a.held = h.lease(a, a.Name)
		require.ErrorIs(h, a.finish(r), one.want, "%s: another term has begun", name)
		require.Equal(h, left, a.value("k"), name)
		a.write(remove("k", engine.Any))
	}
}
