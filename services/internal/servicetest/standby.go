package servicetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/services/leader"
	"gotycoon/ulog"
)

// Standby is a server whose services' database is a copy of that of server 1.
type Standby struct {
	t    *testing.T
	DB   *db.DB
	Role *leader.Role
}

// NewStandby returns server 2, which knows that server 1 is the primary.
func NewStandby(t *testing.T) *Standby {
	t.Helper()
	s := &Standby{t: t, DB: OpenDB(t, t.TempDir())}
	var err error
	s.Role, err = leader.Open(leader.Options{DB: s.DB, SID: 2})
	require.NoError(t, err)
	s.Receive("primary\x001", "1")
	require.NoError(t, s.Role.CaughtUp())
	return s
}

// Receive stores what server 1 has written.
func (s *Standby) Receive(key, value string) { s.t.Helper(); s.ReceiveFrom(1, key, value) }

// ReceiveFrom stores what another server has written.
func (s *Standby) ReceiveFrom(sid uint16, key, value string) {
	s.t.Helper()
	s.Take(ulog.Update{SID: sid, Op: ulog.OpSet, Key: []byte(key), Value: append([]byte{0xff, 0xff, 0xff, 0xff, 0xff}, value...)})
}

// Take stores an update.
func (s *Standby) Take(u ulog.Update) {
	s.t.Helper()
	ups := []ulog.Update{u}
	_, err := s.Role.Prepare(ups)
	require.NoError(s.t, err)
	require.NoError(s.t, s.Role.Replicate(nil, ups, nil, false))
}
