package sequence

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/record"
	"gotycoon/services"
	"gotycoon/services/internal/servicetest"
	"gotycoon/services/internal/webport"
	"gotycoon/services/leader"
)

// Two servers with one number: only the primary gives out numbers, above those of the other.
func TestASharedServerNumber(t *testing.T) {
	s := servicetest.NewStandby(t)
	c := newClock(1_800_000_000)
	r := &records{Records: webport.Records{DB: s.DB}, serverNo: 1, sid: 2}
	open := func(name string) *sequence {
		q, err := openSequence(name, r, s.Role, c.now)
		require.NoError(t, err)
		return q
	}
	s.Receive("sequence\x0012/1\x00", "1900000000") // another number, that begins alike
	own := open("")
	first, err := own.fetch(1)
	require.NoError(t, err, "nobody else has used it")
	require.NoError(t, end(own))

	s.Receive("sequence\x001/1\x00other", "1900000000") // it has not used this name, but may at any time
	own = open("")
	_, err = own.fetch(1)
	require.ErrorAs(t, err, new(*services.Standby))

	s.Receive("sequence\x001/1\x00", "1800000100")
	_, err = own.fetch(1)
	require.ErrorContains(t, err, "another server has the number 1 too, the one with -sid 1, and only the primary gives out numbers then: server 1 is the primary")
	require.ErrorAs(t, err, new(*services.Standby))
	require.NoError(t, s.Role.Claim(true))
	second, err := own.fetch(1)
	require.NoError(t, err)
	require.Greater(t, second, first)
	require.GreaterOrEqual(t, second.second(), uint64(1_800_000_100+leader.AheadSeconds))
	require.NoError(t, end(own))

	own = open("")
	third, err := own.fetch(1)
	require.NoError(t, err)
	require.Greater(t, third, second)
	require.Less(t, third.second(), uint64(1_800_000_110+leader.AheadSeconds), "it goes on where it was")
	own.renewals.Wait()
}

// A server that has never used its number may have it from another one of which it has not heard
// yet.
func TestAServerNumberThatMayBeShared(t *testing.T) {
	d := servicetest.OpenDB(t, t.TempDir())
	role, err := leader.Open(leader.Options{DB: d, SID: 2})
	require.NoError(t, err)
	s, err := New(Options{DB: d, ServerNo: 1, SID: 2, Primary: role})
	require.NoError(t, err)
	q, err := s.sequences.Get(nil, true)
	require.NoError(t, err)
	_, err = q.fetch(1)
	require.ErrorContains(t, err, "another server may have the number 1 too: this server waits for what its master has")
	require.ErrorAs(t, err, new(*services.Standby))
	require.NoError(t, role.CaughtUp())
	_, err = q.fetch(1)
	require.NoError(t, err)
	require.NoError(t, s.Close())

	again, err := leader.Open(leader.Options{DB: d, SID: 2})
	require.NoError(t, err)
	require.Error(t, again.Heard())
	q, err = openSequence("new", s.records, again, time.Now)
	require.NoError(t, err)
	_, err = q.fetch(1)
	require.NoError(t, err, "it is its own, as it was before")
	q.renewals.Wait()
}

// The primary tells the others of its number before anybody asks for one.
func TestThePrimaryAnnouncesItsServerNumber(t *testing.T) {
	d := servicetest.OpenDB(t, t.TempDir())
	role, err := leader.Open(leader.Options{DB: d, SID: 1})
	require.NoError(t, err)
	s, err := New(Options{DB: d, ServerNo: 7, SID: 1, Primary: role})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, role.Alone())
	value, _, err := d.Get(nil, nil, []byte("sequence\x007/1\x00"))
	require.NoError(t, err)
	require.Equal(t, "0", string(value))
	list, err := s.List(10)
	require.NoError(t, err)
	require.Empty(t, list)
}

// A server that is the primary again, after another one, begins above the other's numbers at once.
func TestNumbersOfAPrimaryThatComesBack(t *testing.T) {
	s := servicetest.NewStandby(t)
	c := newClock(1_800_000_000)
	server, err := New(Options{DB: s.DB, ServerNo: 1, SID: 2, Primary: s.Role, Now: c.now})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	require.NoError(t, s.Role.Claim(true))
	q, err := server.sequences.Get(nil, true)
	require.NoError(t, err)
	_, err = q.fetch(1)
	require.NoError(t, err)
	s.Receive("primary\x001", "9")
	s.Receive("sequence\x001/1\x00", "1800000068")
	_, err = q.fetch(1)
	require.ErrorAs(t, err, new(*services.Standby))
	require.NoError(t, s.Role.Claim(true))
	n, err := q.fetch(1)
	require.NoError(t, err)
	require.Greater(t, n.second(), uint64(1_800_000_068))
}

// A number that another server turns out to have is not given out any more as soon as the next
// bound is due.
func TestASharedServerNumberIsNoticed(t *testing.T) {
	s := servicetest.NewStandby(t)
	c := newClock(1_800_000_000)
	q, err := openSequence("", &records{Records: webport.Records{DB: s.DB}, serverNo: 1, sid: 2}, s.Role, c.now)
	require.NoError(t, err)
	_, err = q.fetch(1)
	require.NoError(t, err)
	s.Receive("sequence\x001/1\x00", "1800000004")
	c.seconds.Add(reserveSeconds)
	_, err = q.fetch(1)
	require.ErrorAs(t, err, new(*services.Standby))
	q.renewals.Wait()
}

// Records of before there were server IDs in their keys are this server's.
func TestABoundWithoutAServerID(t *testing.T) {
	d := servicetest.OpenDB(t, t.TempDir())
	require.NoError(t, d.Set(nil, []byte("sequence\x001\x00x"), []byte("1800000500"), record.Never))
	c := newClock(1_800_000_000)
	s, err := openSequence("x", &records{Records: webport.Records{DB: d}, serverNo: 1, sid: 3}, nil, c.now)
	require.NoError(t, err)
	first, err := s.fetch(1)
	require.NoError(t, err)
	require.GreaterOrEqual(t, first.second(), uint64(1_800_000_500))
	s.renewals.Wait()
}

// The HTTP port tells why no number is given out.
func TestFetchOnAStandbyWithTheSameNumber(t *testing.T) {
	s := servicetest.NewStandby(t)
	s.Receive("sequence\x001/1\x00", strconv.FormatInt(time.Now().Unix(), 10))
	c := servicetest.NewClient(t, start(t, Options{DB: s.DB, ServerNo: 1, SID: 2, Primary: s.Role}))
	c.Refused("/fetch", "another server has the number 1 too")
	c = servicetest.NewClient(t, start(t, Options{DB: s.DB, ServerNo: 2, SID: 2, Primary: s.Role}))
	status, _ := c.Get("/fetch")
	require.Equal(t, 200, status)
}

// In a cluster only the primary gives out numbers, whatever their server number is: what another
// member wrote would be its own alone. A member that has stepped down gives out nothing of what it
// has reserved.
func TestOnlyThePrimaryOfAClusterGivesOutNumbers(t *testing.T) {
	d := servicetest.OpenDB(t, t.TempDir())
	role, err := leader.Open(leader.Options{DB: d, SID: 2, Cluster: true})
	require.NoError(t, err)
	s, err := New(Options{DB: d, ServerNo: 1, SID: 2, Primary: role})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, role.CaughtUp())
	q, err := s.sequences.Get(nil, true)
	require.NoError(t, err)
	refused := func() {
		t.Helper()
		_, err := q.fetch(1)
		require.ErrorAs(t, err, new(*services.Standby))
	}
	refused()
	require.NoError(t, role.Stake())
	require.NoError(t, role.Ready())
	refused()
	role.Grant()
	_, err = q.fetch(1)
	require.NoError(t, err)
	q.renewals.Wait()
	role.Revoke("another member leads")
	refused()
	role.Settle()
	refused()
}
