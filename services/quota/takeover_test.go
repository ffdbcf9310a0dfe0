package quota

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/services/leader"
	"gotycoon/ulog"
)

// member is one of several servers, each of which takes over from the one before.
type member struct {
	t       *testing.T
	catalog *db.Catalog
	db      *db.DB
	role    *leader.Role
	server  *Server
}

// takeOver starts a server that has received updates, one after the other, and makes it the primary.
func takeOver(t *testing.T, sid uint16, received []ulog.Update) *member {
	t.Helper()
	dir := t.TempDir()
	catalog, err := db.Open([]string{filepath.Join(dir, "services.kct")}, db.Options{LogDir: filepath.Join(dir, "ulog"), SID: sid})
	require.NoError(t, err)
	m := &member{t: t, catalog: catalog, db: catalog.DB(0)}
	m.role, err = leader.Open(leader.Options{DB: m.db, SID: sid})
	require.NoError(t, err)
	for i := range received {
		_, err := m.role.Prepare(received[i : i+1])
		require.NoError(t, err)
		require.NoError(t, m.role.Replicate(nil, received[i:i+1], nil, false))
	}
	require.NoError(t, m.role.CaughtUp())
	require.NoError(t, m.role.Claim(true))
	m.server, err = New(Options{DB: m.db, Limit: takeoverLimit, Primary: m.role})
	require.NoError(t, err)
	return m
}

const takeoverLimit = 10_000

func (m *member) close() {
	require.NoError(m.t, m.server.Close())
	require.NoError(m.t, m.catalog.Close())
}

// work makes some calls, several of which share a wait.
func (m *member) work(r *rand.Rand, id *int) {
	for range 1 + r.IntN(2) {
		var owed db.Pending
		for range 1 + r.IntN(4) {
			path := fmt.Sprintf("/apply?amt=%d", 1+r.IntN(3))
			switch r.IntN(5) {
			case 0:
				path = fmt.Sprintf("/cancel?jnlsno=%d", 1+r.IntN(8))
			case 1:
				path = "/increase?amt=0"
			}
			if path != "/increase?amt=0" && r.IntN(2) == 0 {
				*id++
				path += fmt.Sprintf("&id=%d", *id)
			}
			body, status := m.server.answer(nil, []byte(path), &owed)
			require.EqualValues(m.t, "200 OK", status, "%s: %s", path, body)
		}
		require.NoError(m.t, owed.Wait())
	}
}

// check requires that each number up to the last one has its journal, that applies and their cancels
// name each other, and that no unit is lost or made.
func (m *member) check(what string) {
	t, recs := m.t, m.server.records
	t.Helper()
	var owed db.Pending
	_, status := m.server.answer(nil, []byte("/decrease?amt=0"), &owed) // completes the last call
	require.EqualValues(t, "200 OK", status)
	require.NoError(t, owed.Wait())
	s, known, err := recs.state("")
	require.NoError(t, err)
	left := int64(takeoverLimit)
	for number := uint64(1); known && number <= s.journal; number++ {
		value, err := recs.Value(journalKey("", number))
		require.NoError(t, err)
		require.NotNil(t, value, "%s: journal %d of %d", what, number, s.journal)
		j, apply, err := parseJournal(value)
		require.NoError(t, err)
		switch {
		case !apply:
			var applied uint64
			_, err := fmt.Sscanf(string(value), "- %d", &applied)
			require.NoError(t, err)
			j, found, err := recs.journal("", applied)
			require.NoError(t, err)
			require.True(t, found && j.cancelled == number, "%s: cancel %d of %d", what, number, applied)
		case j.cancelled != 0:
			value, err := recs.Value(journalKey("", j.cancelled))
			require.NoError(t, err)
			require.Equal(t, string(appendCancel(nil, number)), string(value), "%s: apply %d", what, number)
		default:
			left -= j.amount
		}
	}
	require.True(t, !known || s.remaining == left, "%s: %d are left, and the journals leave %d", what, s.remaining, left)
}

// One server after the other takes over, with all updates of the one before but some of the last,
// which may be a part of a round or of a call. What each has adds up.
func TestTakeoversInTheMiddleOfCallsAddUp(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5))
		id := 0
		m := takeOver(t, 1, nil)
		for sid := uint16(2); sid < 7; sid++ {
			m.work(r, &id)
			ups := logged(t, m.catalog.Log())
			next := takeOver(t, sid, ups[:len(ups)-r.IntN(min(len(ups), 6))])
			m.close()
			m = next
			if r.IntN(2) == 0 {
				m.check(fmt.Sprintf("seed %d, server %d", seed, sid))
			}
		}
		m.check(fmt.Sprint("seed ", seed))
		m.close()
	}
}
