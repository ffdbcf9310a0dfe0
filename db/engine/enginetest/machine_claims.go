package enginetest

import (
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"gotycoon/db/engine"
)

func (m *machine) take(t *rapid.T) {
	w, prefix := m.lane(t), rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "prefix")
	if w.Claims() == nil {
		t.Skip("no claims")
	}
	from := m.key(t)
	r, found, err := w.Claims().Take(w.ctx, engine.Claim{Lane: w.id.Lane, DB: m.db, Prefix: []byte(prefix), From: []byte(from)})
	require.NoError(t, err)
	for _, key := range slices.Sorted(maps.Keys(m.records)) {
		if !strings.HasPrefix(key, prefix) || key < from || m.records[key].XT == 5 {
			continue
		}
		require.True(t, found)
		require.Equal(t, m.records[key], r)
		delete(m.records, key)
		m.claimed = append(m.claimed, claimed{r, w})
		return
	}
	require.False(t, found)
}

func (m *machine) endClaim(t *rapid.T) {
	if len(m.claimed) == 0 {
		t.Skip("nothing is claimed")
	}
	i := rapid.IntRange(0, len(m.claimed)-1).Draw(t, "claim")
	c := m.claimed[i]
	m.claimed = slices.Delete(m.claimed, i, i+1)
	key := string(c.Key.Key)
	_, there := m.records[key]
	w := m.lane(t)
	back := setUntil(key, string(c.Value), 1<<39, engine.Any)
	back.Log[0].DBID = m.db
	if rapid.Bool().Draw(t, "finish") {
		u := removal(key)
		u.DBID = m.db
		require.NoError(t, w.Claims().Finish(w.ctx, c.by.id.Lane, &c.Record, u))
		if !there {
			m.log = append(m.log, text(&u))
		}
	} else {
		require.NoError(t, w.Claims().GiveBack(w.ctx, c.by.id.Lane, &c.Record, back.XT, back.Log[0]))
		m.log = append(m.log, text(&back.Log[0]))
		m.adopt(key)
	}
	require.NoError(t, w.Claims().GiveBack(w.ctx, c.by.id.Lane, &c.Record, 7, back.Log[0]), "the claim has ended")
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

func (m *machine) giveAllBack(t *rapid.T) {
	w := m.lane(t)
	if w.Claims() == nil {
		t.Skip("no claims")
	}
	n, err := w.Claims().GiveBackAll(w.ctx, w.id.Lane)
	require.NoError(t, err)
	var rest []claimed
	for _, c := range m.claimed {
		key := string(c.Key.Key)
		if c.by != w {
			rest = append(rest, c)
		} else if _, there := m.records[key]; !there {
			m.adopt(key)
			n--
		}
	}
	require.Zero(t, n)
	m.claimed = rest
}
