package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/cluster/election"
)

func TestAppointmentsAreCountedFromTheFirstOneThatIsKnown(t *testing.T) {
	start := time.Now()
	tl := tally{changed: start}
	var f Figures
	tl.appointed(0)
	tl.fill(&f, 0)
	require.Zero(t, f.Changes)
	require.Equal(t, start, f.Changed)
	tl.appointed(7)
	tl.fill(&f, 0)
	require.Zero(t, f.Changes, "it may be old")
	for _, term := range []uint64{7, 9, 9, 12} {
		tl.appointed(term)
	}
	tl.fill(&f, 0)
	require.EqualValues(t, 2, f.Changes)
	require.True(t, f.Changed.After(start))
}

func TestAMemberIsMissingWhenItIsSilentForTwoLooks(t *testing.T) {
	var tl tally
	answering := func(led uint64) map[string]bool {
		var f Figures
		tl.fill(&f, led)
		return f.Answering
	}
	members := []election.Member{{Name: "a"}, {Name: "b"}}
	both, one := map[string]Status{"a": {}, "b": {}}, map[string]Status{"a": {}}
	require.Nil(t, answering(3))
	tl.asked(3, members, both)
	tl.asked(3, members, one)
	require.Equal(t, map[string]bool{"a": true, "b": true}, answering(3), "a busy disk may make it late")
	tl.asked(3, members, one)
	require.Equal(t, map[string]bool{"a": true, "b": false}, answering(3))
	require.Nil(t, answering(4), "that was another term")
	require.Nil(t, answering(0))
	tl.asked(3, members, both)
	require.Equal(t, map[string]bool{"a": true, "b": true}, answering(3))
	tl.asked(3, members, one)
	tl.asked(4, members, one)
	require.True(t, answering(4)["b"], "each term begins anew")
	tl.asked(4, members[:1], one)
	require.Equal(t, map[string]bool{"a": true}, answering(4), "b was removed")
}
