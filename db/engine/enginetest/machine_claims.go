package enginetest

import (
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"gotycoon/db/engine"
)

// claimants gives the machine holders of claims at two servers. The caller calls end.
func (m *machine) claimants(h *host, a, b engine.Engine) (end func()) {
	for i, e := range []engine.Engine{a, b} {
		m.claims = append(m.claims, newClaimant(h, e, "claims/"+string(rune('a'+i)), m.db))
	}
	return func() {
		for _, c := range m.claims {
			c.giveUp()
		}
	}
}

func (m *machine) claimant(t *rapid.T) *claimant {
	if m.claims == nil {
		t.Skip("no claims")
	}
	return rapid.SampledFrom(m.claims).Draw(t, "claimant")
}

func (m *machine) take(t *rapid.T) {
	by, prefix := m.claimant(t), rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "prefix")
	from := m.key(t)
	c := by.take(prefix, from)
	for _, key := range slices.Sorted(maps.Keys(m.records)) {
		if !strings.HasPrefix(key, prefix) || key < from || m.records[key].XT == 5 {
			continue
		}
		require.NotNil(t, c)
		require.Equal(t, m.records[key], c.Record)
		delete(m.records, key)
		m.claimed = append(m.claimed, claimed{*c, by})
		return
	}
	require.Nil(t, c)
}

func (m *machine) endClaim(t *rapid.T) {
	if len(m.claimed) == 0 {
		t.Skip("nothing is claimed")
	}
	i := rapid.IntRange(0, len(m.claimed)-1).Draw(t, "claim")
	c, anybody := m.claimed[i], m.claimant(t) // whoever it is, as long as the number is right
	ended := func() { m.claimed = slices.Delete(m.claimed, i, i+1) }
	finished := rapid.Bool().Draw(t, "finish")
	if finished {
		_, there := m.records[string(c.Key.Key)]
		require.NoError(t, anybody.finish(&c.Claimed))
		if ended(); !there {
			m.log = append(m.log, "-"+string(c.Key.Key))
		}
	} else {
		key := rapid.SampledFrom([]string{string(c.Key.Key), m.key(t)}).Draw(t, "to")
		_, there := m.records[key]
		require.Equal(t, there, anybody.giveBack(&c.Claimed, key))
		if there {
			return
		}
		ended()
		m.log = append(m.log, key+"="+string(c.Value))
		m.adopt(key)
		require.Equal(t, c.Value, m.records[key].Value)
		require.Equal(t, engine.Forever, m.records[key].XT)
	}
	require.False(t, anybody.giveBack(&c.Claimed, "c"), "the claim has ended")
	if err := anybody.finish(&c.Claimed); finished {
		require.NoError(t, err)
	} else {
		require.ErrorIs(t, err, engine.ErrUnclaimed)
	}
}

// adopt notes a record that came back, with a revision that only the engine knows.
func (m *machine) adopt(key string) {
	recs, err := m.lanes[0].Read(m.lanes[0].ctx, []engine.Key{{DB: m.db, Key: []byte(key)}}, engine.Reading{})
	require.NoError(m.t, err)
	require.Len(m.t, recs, 1)
	require.False(m.t, m.revision[recs[0].Revision], "a record that comes back has a new revision")
	m.revision[recs[0].Revision] = true
	m.records[key] = recs[0]
}

// settleTake asks for a take that was made, or for one that never comes.
func (m *machine) settleTake(t *rapid.T) {
	by := m.claimant(t)
	if len(m.claimed) > 0 {
		c := rapid.SampledFrom(m.claimed).Draw(t, "claim")
		r, found, err := by.Claims().Settle(by.ctx, c.ID)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, c.Record, r)
	}
	id := by.next()
	for range 2 {
		_, found, err := by.Claims().Settle(by.ctx, id)
		require.NoError(t, err)
		require.False(t, found)
	}
	_, found, err := by.Claims().Take(by.ctx, id, engine.Claim{DB: m.db})
	require.False(t, found)
	if len(m.records)-len(m.expired()) > 0 { // else there is nothing that could be refused
		require.Equal(t, engine.Refused, engine.KindOf(err))
	}
}

// giveUp ends a term: its claims are everybody's, and it claims nothing more.
func (m *machine) giveUp(h *host, t *rapid.T) {
	by := m.claimant(t)
	by.giveUp()
	<-by.lost
	_, found, err := by.Claims().Take(by.ctx, by.next(), engine.Claim{DB: m.db})
	require.False(t, found)
	require.ErrorIs(t, err, engine.ErrFenced)
	by.held = h.lease(by, by.Name)
	want := map[engine.ClaimID]engine.Record{}
	for _, c := range m.claimed {
		if c.ID.By != c.by.Term {
			want[c.ID] = c.Record
		}
	}
	all, err := by.Claims().Abandoned(by.ctx, 1<<20, 1<<30)
	require.NoError(t, err)
	got := map[engine.ClaimID]engine.Record{}
	for _, c := range all {
		if c.DB == m.db { // and not of a run before this one
			got[c.ID] = c.Record
		}
	}
	require.Equal(t, want, got)
}
