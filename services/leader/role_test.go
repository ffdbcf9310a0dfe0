package leader

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/services"
	"gotycoon/ulog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is one of several servers, reduced to its services' database and its role.
type server struct {
	t       *testing.T
	sid     uint16
	file    string
	catalog *db.Catalog
	db      *db.DB
	role    *Role
}

func newServer(t *testing.T, sid uint16) *server {
	t.Helper()
	s := &server{t: t, sid: sid, file: filepath.Join(t.TempDir(), "services.kct")}
	s.open()
	t.Cleanup(func() { require.NoError(t, s.catalog.Close()) })
	return s
}

func (s *server) open() {
	s.t.Helper()
	c, err := db.Open([]string{s.file}, db.Options{SID: s.sid})
	require.NoError(s.t, err)
	s.catalog, s.db = c, c.DB(0)
	s.role, err = Open(Options{DB: s.db, SID: s.sid})
	require.NoError(s.t, err)
}

func (s *server) restart() {
	s.t.Helper()
	require.NoError(s.t, s.catalog.Close())
	s.open()
}

func (s *server) set(key, value string) {
	s.t.Helper()
	require.NoError(s.t, s.db.Set(nil, []byte(key), []byte(value), record.Never))
}

func (s *server) get(key string) string {
	s.t.Helper()
	value, _, err := s.db.Get(nil, nil, []byte(key))
	if errors.Is(err, dberr.ErrNoRecord) {
		return "none"
	}
	require.NoError(s.t, err)
	return string(value)
}

func (s *server) requirePrimary() {
	s.t.Helper()
	_, err := s.role.Term()
	require.NoError(s.t, err)
}

func (s *server) requireStandby(reason string) {
	s.t.Helper()
	_, err := s.role.Term()
	require.ErrorContains(s.t, err, reason)
	require.ErrorAs(s.t, err, new(*services.Standby))
}

// from is an update that another server has made.
func from(sid uint16, key, value string) ulog.Update {
	stored := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff}, value...) // an expiration time of never
	return ulog.Update{SID: sid, Op: ulog.OpSet, Key: []byte(key), Value: stored}
}

func claimBy(sid uint16, term int) ulog.Update {
	return from(sid, fmt.Sprintf("primary\x00%d", sid), fmt.Sprint(term))
}

// receive has updates arrive in a stream, copy in a copy.
func (s *server) receive(ups ...ulog.Update) (refresh bool) { s.t.Helper(); return s.take(false, ups) }
func (s *server) copy(ups ...ulog.Update) (refresh bool)    { s.t.Helper(); return s.take(true, ups) }

func (s *server) take(copied bool, ups []ulog.Update) bool {
	s.t.Helper()
	refresh, err := s.role.Prepare(ups)
	require.NoError(s.t, err)
	require.NoError(s.t, s.role.Replicate(nil, ups, nil, copied))
	return refresh
}

// service notes what it is told.
type service struct {
	role  *Role
	told  []string
	fails error
}

// Lead implements Service.
func (s *service) Lead() error {
	s.told = append(s.told, "lead")
	return s.fails
}

// Yield implements Service.
func (s *service) Yield() {
	_, err := s.role.Term()
	s.told = append(s.told, fmt.Sprint("yield ", err != nil))
}

func TestAServerAloneIsThePrimary(t *testing.T) {
	s := newServer(t, 7)
	s.requireStandby("waits for what its master has")
	svc := &service{role: s.role}
	require.NoError(t, s.role.Attach(svc))
	require.Empty(t, svc.told)
	require.NoError(t, s.role.Alone())
	s.requirePrimary()
	require.Equal(t, []string{"lead"}, svc.told)
	require.Equal(t, "1", s.get("primary\x007"))
	late := &service{role: s.role}
	require.NoError(t, s.role.Attach(late))
	require.Equal(t, []string{"lead"}, late.told)

	require.NoError(t, s.role.Alone())
	require.NoError(t, s.role.Claim(false), "it is already")
	require.Equal(t, "1", s.get("primary\x007"))
	s.restart()
	s.requireStandby("was the primary, and waits to hear")
	require.NoError(t, s.role.Alone())
	s.requirePrimary()
	require.Equal(t, "1", s.get("primary\x007"))
}

func TestARoleThatIsNoneIsAlwaysThePrimary(t *testing.T) {
	var none *Role
	term, err := none.Term()
	require.NoError(t, err)
	require.NotZero(t, term)
	svc := &service{}
	require.NoError(t, none.Attach(svc))
	require.Equal(t, []string{"lead"}, svc.told)
}

func TestASlaveTakesOver(t *testing.T) {
	s := newServer(t, 2)
	require.False(t, s.receive(claimBy(1, 1), from(1, "quota\x00\x00state", "10")), "there is nothing here that could be more")
	require.NoError(t, s.role.CaughtUp())
	s.requireStandby("server 1 is the primary")
	require.NoError(t, s.role.Alone())
	s.requireStandby("server 1 is the primary") // nobody knows whether that is gone
	require.Equal(t, "10", s.get("quota\x00\x00state"))
	before, err := s.role.Term()
	require.Error(t, err)
	require.NoError(t, s.role.Claim(false))
	s.requirePrimary()
	after, err := s.role.Term()
	require.NoError(t, err)
	require.Greater(t, after, before)
	require.Equal(t, "2", s.get("primary\x002"))
	sid, ok := s.role.Primary()
	require.True(t, ok)
	require.EqualValues(t, 2, sid)

	require.False(t, s.receive(from(1, "quota\x00\x00state", "9")), "what the former primary did afterwards")
	require.Equal(t, "10", s.get("quota\x00\x00state"))
}

func TestTheFormerPrimaryYields(t *testing.T) {
	s := newServer(t, 1)
	svc := &service{role: s.role}
	require.NoError(t, s.role.Attach(svc))
	require.NoError(t, s.role.Alone())
	s.set("quota\x00\x00state", "5")
	s.restart()
	svc.role = s.role
	svc.told = nil
	require.NoError(t, s.role.Attach(svc))
	require.True(t, s.receive(claimBy(2, 2), from(2, "quota\x00\x00state", "7")), "what is here may be more than the new one knows of")
	s.requireStandby("server 2 is the primary")
	require.Empty(t, svc.told, "it has not begun again")
	require.Equal(t, "7", s.get("quota\x00\x00state"))

	require.ErrorContains(t, s.role.Claim(false), "only a part")
	s.role.Partial(false)
	require.ErrorContains(t, s.role.Claim(false), "may be old")
	require.NoError(t, s.role.CaughtUp())
	require.NoError(t, s.role.Claim(false))
	s.requirePrimary()
	require.True(t, s.receive(claimBy(2, 4)))
	require.Equal(t, []string{"lead", "yield true"}, svc.told)
	require.NoError(t, s.role.CaughtUp())
	s.requireStandby("server 2 is the primary")
	require.False(t, s.receive(claimBy(2, 5)), "the same one")
}

// Somebody may say that a server is the primary although it may lack something.
func TestAClaimByForce(t *testing.T) {
	s := newServer(t, 2)
	s.receive(claimBy(1, 1))
	s.role.Partial(true)
	require.ErrorContains(t, s.role.Claim(false), "only a part")
	require.NoError(t, s.role.Claim(true))
	s.requirePrimary()

	s.restart()
	require.ErrorContains(t, s.role.Claim(false), "may be old")
	require.NoError(t, s.role.Claim(true))
	s.requirePrimary()
	require.Equal(t, "3", s.get("primary\x002"))
}

func TestThePrimaryWithAMasterWaitsAfterItsStart(t *testing.T) {
	s := newServer(t, 1)
	require.NoError(t, s.role.Claim(false))
	s.restart()
	s.requireStandby("waits to hear from its master")
	require.NoError(t, s.role.CaughtUp())
	s.requirePrimary()
}

func TestNobodyIsThePrimaryBeforeAnybodySaysSo(t *testing.T) {
	s := newServer(t, 1)
	require.NoError(t, s.role.CaughtUp())
	s.requireStandby("no server is the primary yet")
}

func TestEqualClaimsAreNobodys(t *testing.T) {
	s := newServer(t, 1)
	require.NoError(t, s.role.Claim(false))
	s.set("quota\x00\x00state", "5")
	require.False(t, s.receive(claimBy(3, 1)))
	s.requireStandby("servers [1 3] have equal claims")
	require.NoError(t, s.role.Alone())
	s.requireStandby("equal claims")
	require.False(t, s.receive(from(3, "quota\x00\x00state", "9")))
	require.Equal(t, "5", s.get("quota\x00\x00state"), "what both have done is not mixed")
	require.True(t, s.receive(claimBy(3, 2)))
	s.requireStandby("server 3 is the primary")
}

// One that has not heard of the equal claim settles it, too.
func TestThePrimaryClaimsAgain(t *testing.T) {
	s := newServer(t, 1)
	require.NoError(t, s.role.Claim(false))
	svc := &service{role: s.role}
	require.NoError(t, s.role.Attach(svc))
	require.NoError(t, s.role.Claim(true))
	s.requirePrimary()
	require.Equal(t, "2", s.get("primary\x001"))
	require.Equal(t, []string{"lead"}, svc.told, "it has always been the primary")
	term, err := s.role.Term()
	require.NoError(t, err)
	require.EqualValues(t, 2, term)
}

// A server hears of a takeover in one batch: what the former primary did before must come as a
// copy, since only the last one's is taken.
func TestATakeoverThatComesAtOnce(t *testing.T) {
	s := newServer(t, 9)
	require.True(t, s.receive(claimBy(1, 1), from(1, "quota\x00a\x00state", "1"), claimBy(2, 2), from(2, "quota\x00b\x00state", "2")))
	require.ErrorContains(t, s.role.Claim(false), "only a part")
}

// The primary has been away for so long that its master gives it a copy: only a greater claim in
// that makes it the other one's.
func TestACopyLeavesThePrimaryWhatItHas(t *testing.T) {
	s := newServer(t, 1)
	require.NoError(t, s.role.Claim(false))
	s.set("quota\x00\x00state", "5")
	s.restart()
	old := from(2, "quota\x00\x00state", "7")
	s.copy(claimBy(1, 1), old, ulog.Update{SID: 2, Op: ulog.OpRemove, Key: []byte("quota\x00b\x00state")})
	require.Equal(t, "5", s.get("quota\x00\x00state"))
	require.NoError(t, s.role.CaughtUp())
	s.requirePrimary()
	s.restart()
	s.copy(claimBy(1, 1), claimBy(2, 2), old)
	require.Equal(t, "7", s.get("quota\x00\x00state"))
	require.NoError(t, s.role.CaughtUp())
	s.requireStandby("server 2 is the primary")
}

// A server that was replaced, or restored from a backup, gets what others have kept, and is not the
// primary by itself: another server may have its ID. What it gives out is above what it may have
// given out before.
func TestAServerThatHasLostWhatItMade(t *testing.T) {
	for _, before := range []int{0, 3} {
		s := newServer(t, 1)
		if before > 0 {
			s.set("primary\x001", fmt.Sprint(before))
			s.set("lock\x00fence\x001", "10")
			s.set("quota\x00\x00state", "80")
			s.restart()
		}
		require.True(t, s.copy(from(2, "lock\x00fence\x001", "1000"), claimBy(1, 5), from(2, "quota\x00\x00state", "70"), from(2, "sequence\x007/1\x00", "100"),
			from(2, "sequence\x007/11\x00", "100")), "it may be heard of in a stream, too")
		s.role.Partial(false)
		require.Equal(t, "70", s.get("quota\x00\x00state"))
		require.Equal(t, fmt.Sprint(1000+AheadTokens), s.get("lock\x00fence\x001"))
		require.Equal(t, fmt.Sprint(100+AheadSeconds), s.get("sequence\x007/1\x00"))
		require.Equal(t, "100", s.get("sequence\x007/11\x00"))
		for range 2 {
			require.NoError(t, s.role.CaughtUp())
			s.requireStandby("has lost what it made as the primary (term 5), or another one has its -sid 1")
			s.copy(from(2, "lock\x00fence\x001", "1000"), claimBy(1, 5), from(2, "quota\x00\x00state", "71"))
			require.Equal(t, "71", s.get("quota\x00\x00state"), "not its own")
			require.Equal(t, fmt.Sprint(1000+AheadTokens), s.get("lock\x00fence\x001"))
			s.restart()
		}
		require.NoError(t, s.role.CaughtUp())
		require.NoError(t, s.role.Claim(false))
		s.requirePrimary()
		require.Equal(t, "6", s.get("primary\x001"))
		s.restart()
		require.NoError(t, s.role.CaughtUp())
		s.requirePrimary()
	}
}

// What only one server writes is never made less, whoever tells it and how.
func TestBoundsOnlyGrow(t *testing.T) {
	s := newServer(t, 9)
	for _, key := range []string{"sequence\x001/1\x00", "sequence\x001/2\x00x", "lock\x00fence\x002", "primary\x002"} {
		for _, row := range []struct{ told, want string }{{"5", "5"}, {"4", "5"}, {"nonsense", "5"}, {"10", "10"}, {"9", "10"}} {
			s.receive(from(2, key, row.told))
			s.copy(from(2, key, row.told))
			require.Equal(t, row.want, s.get(key))
		}
		s.copy(ulog.Update{SID: 2, Op: ulog.OpRemove, Key: []byte(key)})
		require.Equal(t, "10", s.get(key))
	}
}

func TestOnlyThePrimarysRecordsAreTaken(t *testing.T) {
	s := newServer(t, 9)
	s.receive(from(4, "quota\x00a\x00state", "1"))
	require.Equal(t, "1", s.get("quota\x00a\x00state"), "before anybody is the primary")
	s.receive(claimBy(4, 2), claimBy(5, 3))
	s.receive(from(4, "quota\x00a\x00state", "2"))
	require.Equal(t, "1", s.get("quota\x00a\x00state"), "of one that is it no more")
	s.receive(from(5, "quota\x00a\x00state", "3"))
	require.Equal(t, "3", s.get("quota\x00a\x00state"))
	copied := []ulog.Update{from(4, "quota\x00a\x00state", "4")}
	s.copy(copied...)
	require.Equal(t, "4", s.get("quota\x00a\x00state"), "what a master has is the primary's")
	require.EqualValues(t, 5, copied[0].SID, "and goes on to others as that")
	s.copy(ulog.Update{SID: 5, Op: ulog.OpRemove, Key: []byte("quota\x00a\x00state")})
	require.Equal(t, "none", s.get("quota\x00a\x00state"))

	s.set("quota\x00b\x00state", "1")
	s.receive(ulog.Update{SID: 5, Op: ulog.OpClear})
	require.Equal(t, "1", s.get("quota\x00b\x00state"))
}

// A service that cannot take over leaves the server what it was, and what was told before is told
// the contrary.
func TestALeadThatFails(t *testing.T) {
	s := newServer(t, 1)
	first, second := &service{role: s.role}, &service{role: s.role, fails: errors.New("no disk")}
	require.NoError(t, s.role.Attach(first))
	require.NoError(t, s.role.Attach(second))
	require.ErrorContains(t, s.role.Alone(), "no disk")
	s.requireStandby("cannot be taken over: no disk")
	require.Equal(t, []string{"lead", "yield true"}, first.told)
	second.fails = nil
	require.NoError(t, s.role.Claim(false))
	s.requirePrimary()
	require.ErrorContains(t, s.role.Attach(&service{role: s.role, fails: errors.New("no disk")}), "no disk")
}

func TestADatabaseThatIsNoPlaceForServices(t *testing.T) {
	for _, expr := range []string{":", "%", filepath.Join(t.TempDir(), "x.kct#rcomp=dec")} {
		c, err := db.Open([]string{expr}, db.Options{})
		require.NoError(t, err)
		_, err = Open(Options{DB: c.DB(0)})
		require.Error(t, err, expr)
		require.NoError(t, c.Close())
	}
}

func TestAClaimThatCannotBeStored(t *testing.T) {
	s := newServer(t, 1)
	require.NoError(t, s.catalog.Close())
	c, err := db.Open([]string{s.file}, db.Options{ReadOnly: true})
	require.NoError(t, err)
	s.catalog = c
	role, err := Open(Options{DB: c.DB(0), SID: 1})
	require.NoError(t, err)
	require.ErrorIs(t, role.Alone(), dberr.ErrReadOnly)
	_, err = role.Term()
	require.ErrorContains(t, err, "claim to be the primary")
}

// In a cluster the services take over before calls are served, and end after calls are refused. A
// disk that hangs meanwhile holds up neither Grant nor Revoke.
func TestAClusterGrantsAndRevokes(t *testing.T) {
	s := newServer(t, 1)
	s.role.opts.Cluster = true
	svc := &service{role: s.role}
	require.NoError(t, s.role.Attach(svc))
	s.role.Grant()
	s.requireStandby("") // nothing is ready
	require.NoError(t, s.role.Stake())
	require.NoError(t, s.role.Ready())
	require.Equal(t, []string{"lead"}, svc.told)
	require.NoError(t, s.role.Alone())
	_, err := s.role.Term()
	require.Error(t, err, "the services are ready, and calls are not served yet")
	s.role.Grant()
	s.requirePrimary()

	s.role.mu.Lock() // as by somebody who waits for the disk
	s.role.Revoke("its disk hangs")
	s.requireStandby("its disk hangs")
	s.role.mu.Unlock()
	require.Equal(t, []string{"lead"}, svc.told)
	s.role.Settle()
	s.role.Settle()
	require.Equal(t, []string{"lead", "yield true"}, svc.told)
	s.role.Grant()
	s.requireStandby("its disk hangs")

	svc.fails = errors.New("the disk is full")
	require.NoError(t, s.role.Stake())
	require.ErrorIs(t, s.role.Ready(), svc.fails)
	s.role.Grant()
	s.requireStandby("cannot be taken over")
	_, err = s.role.Term()
	require.NotContains(t, err.Error(), "tunerepl", "the cluster decides")
	svc.fails = nil
	require.NoError(t, s.role.Ready(), "it is tried again")
	s.role.Grant()
	s.requirePrimary()
}

// A primary that died before anybody had its claim knows a claim that nobody else does, as great as
// the next primary's or greater. It follows that one all the same: the cluster decides.
func TestAMemberFollowsThePrimaryWhateverItHasClaimedAlone(t *testing.T) {
	for name, stakes := range map[string]int{"equal": 1, "greater": 2} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 1)
			s.role.opts.Cluster = true
			for range stakes {
				require.NoError(t, s.role.Stake())
			}
			s.restart()
			s.role.opts.Cluster = true
			s.receive(claimBy(2, 1), from(2, "quota\x00\x00state", "10"))
			require.Equal(t, "10", s.get("quota\x00\x00state"), "what the primary grants")
			s.copy(from(2, "quota\x00\x00state", "7"))
			require.Equal(t, "7", s.get("quota\x00\x00state"), "what a copy of the primary has")

			require.NoError(t, s.role.Stake())
			require.NoError(t, s.role.Ready())
			require.Equal(t, fmt.Sprint(stakes+1), s.get("primary\x001"), "no number comes twice")
		})
	}
}

// lonely is a Confirmer that wants a follower where there is none.
type lonely struct{}

var errLonely = errors.New("a follower is missing")

func (lonely) Required() int                            { return 1 }
func (lonely) Confirmed(_, _ int) ulog.Stamp            { return 1 }
func (lonely) WaitConfirmed(ulog.Stamp, int, int) error { return errLonely }
func (lonely) Admits(_, _ int) error                    { return errLonely }

// A server takes over from a primary that has died although answers of its own would wait for
// followers, which look for the new primary only afterwards.
func TestAClaimNeedsNoFollower(t *testing.T) {
	c, err := db.Open([]string{filepath.Join(t.TempDir(), "services.kct")}, db.Options{SID: 2, LogDir: t.TempDir()})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	s := &server{t: t, sid: 2, catalog: c, db: c.DB(0)}
	s.role, err = Open(Options{DB: s.db, SID: s.sid})
	require.NoError(t, err)
	s.receive(claimBy(1, 4))
	require.NoError(t, s.role.CaughtUp())
	s.requireStandby("server 1 is the primary")
	c.Log().SetConfirmer(lonely{}, true)
	require.ErrorIs(t, s.db.Set(new(db.Pending), []byte("k"), nil, record.Never), errLonely)
	require.NoError(t, s.role.Claim(false))
	s.requirePrimary()
}
