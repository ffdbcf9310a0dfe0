package memcache

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/db/record"
)

// guarded starts a service whose access file has these lines, and for each user a line with the
// user's name as the password.
func guarded(t *testing.T, plex, users string, lines ...string) (st *started, change func(lines ...string)) {
	t.Helper()
	return guardedOn(t, ":", plex, users, lines...)
}

// guardedOn is guarded for a database of another kind.
func guardedOn(t *testing.T, expr, plex, users string, lines ...string) (st *started, change func(lines ...string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access")
	write := func(lines ...string) {
		for name := range strings.FieldsSeq(users) {
			hash, err := bcrypt.GenerateFromPassword([]byte(name), bcrypt.MinCost)
			require.NoError(t, err)
			lines = append(lines, name+":"+string(hash))
		}
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	}
	write(lines...)
	g, err := access.Open(access.Options{Path: path})
	require.NoError(t, err)
	t.Cleanup(g.Close)
	catalog, err := db.Open([]string{expr}, db.Options{})
	require.NoError(t, err)
	s, err := New(Options{Config: ParseConfig(plex), DB: catalog.DB(0), Started: time.Now(), Access: g})
	require.NoError(t, err)
	st = &started{Server: s, db: catalog.DB(0), catalog: catalog}
	st.open(t)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, catalog.Close())
	})
	return st, func(lines ...string) { write(lines...); g.Reload() }
}

func TestTextAuthentication(t *testing.T) {
	for _, plex := range []string{"", "opts=f"} {
		s, change := guarded(t, plex, "anna", "allow anna read,write prefix=eu:")
		c := s.dial(t)
		c.ask("get eu:1\n", "CLIENT_ERROR unauthenticated\n")
		c.ask("version\n", "CLIENT_ERROR unauthenticated\n")
		c.ask("nonsense\n", "CLIENT_ERROR unauthenticated\n")
		c.ask("add eu:1 0 0 5\nget x\n", "CLIENT_ERROR unauthenticated\n") // the block was read
		c.ask("set x 0 0 10\nanna wrong\n", "CLIENT_ERROR authentication failure\n")
		c.ask("set x 0 0 4\nanna\n", "CLIENT_ERROR authentication failure\n")
		c.ask("set x 0 0 9\nanna anna\n", "STORED\n")
		c.ask("get x\n", "CLIENT_ERROR access denied: anna has no right to read for this key of database 0 (:)\n")
		c.ask("set x 0 0 9\nanna anna\n", "CLIENT_ERROR access denied: anna has no right to write for this key of database 0 (:)\n")
		c.send("%s", crlf("set x 0 0 1 noreply\n1\n"))
		c.ask("set eu:1 0 0 1\n1\nget eu:1\n", "STORED\nVALUE eu:1 0 1\n1\nEND\n")
		c.ask("get eu:1 us:1\n", "CLIENT_ERROR access denied: anna has no right to read for this key of database 0 (:)\n")
		c.ask("incr eu:1 4\ndelete us:1\n", "5\nCLIENT_ERROR access denied: anna has no right to write for this key of database 0 (:)\n")
		c.ask("flush_all\n", "CLIENT_ERROR access denied: anna has no right to write for the whole database 0 (:)\n")
		c.ask("set\n", "CLIENT_ERROR invalid parameters\n")

		change("allow anna read,write") // the line of the password is a new one
		c.ask("get eu:1\n", "CLIENT_ERROR unauthenticated\n")
		c.ask("set x 0 0 9\nanna anna\nset us:1 0 0 1\n1\n", "STORED\nSTORED\n")
		c.ask("flush_all\n", "OK\n")
		c.ask("quit\n", "")
		c.ended()
		require.Zero(t, count(t, s))

		c = s.dial(t)
		c.ask("set x 0 0 100000\n", "CLIENT_ERROR authentication failure\n")
		c.ended()
		c = s.dial(t)
		c.ask("add x 0 0 100000\n", "CLIENT_ERROR unauthenticated\n")
		c.ended()
	}
}

func count(t *testing.T, s *started) int64 {
	t.Helper()
	n, err := s.db.Count(nil)
	require.NoError(t, err)
	return n
}

func TestMetaCommandsNeedTheRightsOfTheirFlags(t *testing.T) {
	s, _ := guarded(t, "opts=m", "anna berta", "allow anna read prefix=eu:", "allow berta write prefix=eu:", "allow anyone read prefix=free:")
	c := s.dial(t)
	c.ask("mg free:1 v\n", "EN\n")
	c.ask("mg eu:1 v\n", "CLIENT_ERROR access denied: without a user or token there is no right to read for this key of database 0 (:)\n")
	c.ask("set x 0 0 9\nanna anna\n", "STORED\n")
	c.ask("mg eu:1 v\nmg ZXU6MQ== b v\n", "EN\nEN\n")
	no := "CLIENT_ERROR access denied: anna has no right to "
	c.ask("mg dXM6MQ== b v\n", no+"read for this key of database 0 (:)\n")
	c.ask("mg eu:1 N10 v\n", no+"write for this key of database 0 (:)\n")
	c.ask("mg eu:1 T10 v\n", no+"write for this key of database 0 (:)\n")
	c.ask("ms eu:1 2\nab\n", no+"write for this key of database 0 (:)\n")
	c.ask("ma eu:1\n", no+"write for this key of database 0 (:)\n")
	c.ask("md eu:1\n", no+"write for this key of database 0 (:)\n")
	c.ask("mn\nme eu:1\n", "MN\nEN\n")
	c = s.dial(t)
	c.ask("set x 0 0 11\nberta berta\nms ZXU6MQ== 2 b\nab\nms dXM6MQ== 2 b\nab\n",
		"STORED\nHD b\nCLIENT_ERROR access denied: berta has no right to write for this key of database 0 (:)\n")
	c.ask("gat 10 eu:1\n", "CLIENT_ERROR access denied: berta has no right to read for this key of database 0 (:)\n")
}

func TestBinaryAuthentication(t *testing.T) {
	s, _ := guarded(t, "opts=m", "anna", "allow anna read,write prefix=eu:")
	c := s.dial(t)
	ask := func(m []byte, want status, value string) {
		t.Helper()
		c.send("%s", m)
		got := c.binary()
		require.Equal(t, want, got.status)
		require.Equal(t, value, got.value)
	}
	denied := "access denied: anna has no right to "
	ask(message(opVersion, 0, "", ""), statusOK, ModernVersion)
	ask(message(opGet, 0, "eu:1", ""), statusAuth, "Auth failure.")
	ask(message(opNoop, 0, "", ""), statusAuth, "Auth failure.")
	ask(message(opMechanisms, 0, "", ""), statusOK, "PLAIN")
	ask(message(opAuth, 0, "PLAIN", "\x00anna\x00wrong"), statusAuth, "Auth failure.")
	ask(message(opAuth, 0, "PLAIN", "anna"), statusAuth, "Auth failure.")
	ask(message(opAuth, 0, "CRAM-MD5", "\x00anna\x00anna"), statusAuth, "Auth failure.")
	ask(message(opStep, 0, "PLAIN", ""), statusAuth, "Auth failure.")
	ask(message(opAuth, 0, "PLAIN", "\x00anna\x00anna"), statusOK, "Authenticated")
	ask(message(opSet, 0, "eu:1", "5", uint32(0), uint32(0)), statusOK, "")
	ask(message(opGet, 0, "eu:1", ""), statusOK, "5")
	ask(message(opGetQ, 0, "us:1", ""), statusAuth, denied+"read for this key of database 0 (:)")
	ask(message(opSetQ, 0, "us:1", "5", uint32(0), uint32(0)), statusAuth, denied+"write for this key of database 0 (:)")
	ask(message(opIncrement, 0, "us:1", "", uint64(1), uint64(1), uint32(0)), statusAuth, denied+"read,write for this key of database 0 (:)")
	ask(message(opDelete, 0, "us:1", ""), statusAuth, denied+"write for this key of database 0 (:)")
	ask(message(opFlush, 0, "", ""), statusAuth, denied+"write for the whole database 0 (:)")
	ask(message(opStat, 0, "", ""), statusAuth, denied+"read for the whole database 0 (:)")
	ask(message(0x77, 0, "", ""), statusUnknown, "Unknown command")

	c = s.dial(t)
	big := message(opSet, 0, "x", "", uint32(0), uint32(0))
	big[9] = 0x10 // a body of a megabyte
	ask(big, statusTooLarge, "Too large.")
	c.ended()
}

// The counters are the same for all clients, so setting them to 0 acts on the server.
func TestResettingTheFiguresNeedsAdmin(t *testing.T) {
	const denied = "access denied: without a user or token there is no right to admin for the whole server"
	for _, rights := range []string{"read,write", "read,write,replicate"} {
		s, _ := guarded(t, "opts=m", "", "allow anyone "+rights)
		c := s.dial(t)
		c.ask("get none\nverbosity 1\n", "END\nOK\n")
		c.ask("stats reset\n", "CLIENT_ERROR "+denied+"\n")
		c.send("%s", message(opStat, 0, "reset", ""))
		got := c.binary()
		require.Equal(t, statusAuth, got.status, rights)
		require.Equal(t, denied, got.value)
		require.EqualValues(t, 1, s.counts.get.misses.Load())
	}
	s, _ := guarded(t, "opts=m", "", "allow anyone admin")
	c := s.dial(t)
	c.ask("get none\nstats reset\n", "END\nRESET\n")
	require.Zero(t, s.counts.get.misses.Load())
	c.send("%s", message(opStat, 0, "reset", ""))
	require.Equal(t, statusOK, c.binary().status)

	s, _ = guarded(t, "", "", "allow anyone read") // the original's plug-in shows the figures
	c = s.dial(t)
	c.send("stats reset\r\n")
	require.Contains(t, c.line(), "STAT pid")
}

// Without a guard the opcodes of SASL are unknown, as they were.
func TestWithoutAGuardThereIsNoSASL(t *testing.T) {
	c := start(t, "opts=m", ":").dial(t)
	for _, op := range []opcode{opMechanisms, opAuth, opStep} {
		c.send("%s", message(op, 0, "", ""))
		require.Equal(t, statusUnknown, c.binary().status)
	}
}

// TestTheRightToWriteIsLookedAtAgainAfterAWait leaves the right to read to a request that waits for
// a message: that is not enough to take the message.
func TestTheRightToWriteIsLookedAtAgainAfterAWait(t *testing.T) {
	s, change := guardedOn(t, "%", "opts=q#qtout=60", "", "allow anyone read,write")
	c := s.dial(t)
	c.send("get job\r\n")
	s.awaitWaiters(t, "job", 1)
	change("allow anyone read")
	require.NoError(t, s.db.Set(nil, []byte("job 1"), []byte("message"), record.Never))
	require.Contains(t, c.line(), "CLIENT_ERROR access denied")
	claim, err := s.db.Claim(nil, nil, []byte("job "), nil)
	require.NoError(t, err, "the message has gone back")
	require.Equal(t, "message", string(claim.Value))
}

// TestRightsAreLookedAtAgainAfterAWait takes a right away while a request waits for its data or for
// a message. The request must not be carried out with a right that is gone.
func TestRightsAreLookedAtAgainAfterAWait(t *testing.T) {
	s, change := guardedOn(t, "%", "opts=q", "", "allow anyone read,write")
	set, get := s.dial(t), s.dial(t)
	set.send("version\r\nset name 0 0 1\r\n")
	require.Contains(t, set.line(), "VERSION") // leaves when the data is waited for
	get.send("get other\r\n")
	require.Eventually(t, func() bool { // the message is waited for
		s.queues.mu.Lock()
		defer s.queues.mu.Unlock()
		return s.queues.lines["other"] != nil
	}, patience, time.Millisecond)
	change("allow anyone write prefix=nobody")
	set.send("1\r\n")
	require.Contains(t, set.line(), "CLIENT_ERROR access denied")
	require.NoError(t, s.db.Set(nil, []byte("other 1"), []byte("message"), record.Never))
	require.Contains(t, get.line(), "CLIENT_ERROR access denied")
	claim, err := s.db.Claim(nil, nil, []byte("other "), nil)
	require.NoError(t, err, "the message has gone back")
	require.Equal(t, "message", string(claim.Value))
	n, err := s.db.Count(nil)
	require.NoError(t, err)
	require.Zero(t, n, "nothing was stored")
}

// Who may only read must not take messages: nobody else would get them, and a message that is given
// back has lost its expiration time.
func TestTakingMessagesNeedsBothRights(t *testing.T) {
	s, _ := guardedOn(t, "%", "opts=fq#qtout=0.05", "", "allow anyone read")
	key := []byte("job 0001 0001")
	require.NoError(t, s.db.Set(nil, key, []byte("work\x00\x00\x00\x00"), record.XT(1000)))
	denied := "access denied: without a user or token there is no right to write for this key of database 0 (%)"
	c := s.dial(t)
	for _, command := range []string{"get job", "gets job", "get other job", "mg job v", "mg am9i b v"} {
		c.ask(command+"\n", "CLIENT_ERROR "+denied+"\n")
	}
	c.ask("gat 10 job\n", "CLIENT_ERROR "+denied+"\n")
	for _, op := range []opcode{opGet, opGetQ} {
		c.send("%s", message(op, 0, "job", ""))
		got := c.binary()
		require.Equal(t, statusAuth, got.status)
		require.Equal(t, denied, got.value)
	}
	claim, err := s.db.Claim(nil, nil, []byte("job "), nil)
	require.NoError(t, err, "nobody has taken it")
	require.Equal(t, key, claim.Key)
}
