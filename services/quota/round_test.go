package quota

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/gate"
	"gotycoon/internal/netio"
	"gotycoon/services"
	"gotycoon/services/internal/servicetest"
	"gotycoon/ulog"
)

// logging opens a services' database with a log that the test can read.
func logging(t *testing.T) (*db.Catalog, *db.DB) {
	t.Helper()
	dir := t.TempDir()
	catalog, err := db.Open([]string{filepath.Join(dir, "services.kct")}, db.Options{LogDir: filepath.Join(dir, "ulog"), SID: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, catalog.Close()) })
	return catalog, catalog.DB(0)
}

// pipeline sends calls in one piece, and requires the lines of their replies.
func pipeline(t *testing.T, c *servicetest.Client, paths, replies []string) {
	t.Helper()
	var text strings.Builder
	for _, path := range paths {
		fmt.Fprintf(&text, "GET %s HTTP/1.1\r\n\r\n", path)
	}
	_, err := io.WriteString(c.Socket, text.String())
	require.NoError(t, err)
	for i, reply := range replies {
		status, body := servicetest.ReadReply(t, c.Reader)
		require.Equal(t, 200, status, paths[i])
		require.Equal(t, reply+"\n", body, paths[i])
	}
}

// keysOf returns the last parts of the keys of updates.
func keysOf(ups []ulog.Update) (keys []string) {
	for _, u := range ups {
		parts := strings.SplitN(string(u.Key), "\x00", 4)
		keys = append(keys, strings.Join(parts[1:], " "))
	}
	return keys
}

func number(n byte) string { return "\x00\x00\x00\x00\x00\x00\x00" + string(rune(n)) }

// The applies of a round are one group of the log. Every other call comes behind those before it.
func TestARoundIsCommittedOnce(t *testing.T) {
	catalog, d := logging(t)
	c := servicetest.NewClient(t, start(t, Options{DB: d, Limit: 100}))
	c.Is("/increase?amt=50&name=b", "50")
	before := len(logged(t, catalog.Log()))
	pipeline(t, c,
		[]string{"/apply?amt=1", "/apply?amt=2", "/apply?amt=5&name=b", "/apply?amt=3", "/query", "/cancel?jnlsno=2", "/apply?amt=4", "/apply?amt=-1", "/apply?amt=0&id=x"},
		[]string{"1 99", "2 97", "1 45", "3 94", "94", "4 96", "5 92", "-1", "6 92"})
	require.Equal(t, []string{
		" journal " + number(1), " journal " + number(2), " journal " + number(3), " state",
		" state", " journal " + number(2), " journal " + number(4),
		" journal " + number(5), " state",
		" state", " journal " + number(6), " id x",
		"b journal " + number(1), "b state",
	}, spaced(keysOf(logged(t, catalog.Log())[before:])))
}

// spaced replaces the zero byte behind "journal" and "id" by a blank.
func spaced(keys []string) []string {
	for i, key := range keys {
		keys[i] = strings.Replace(strings.Replace(key, "journal\x00", "journal ", 1), "id\x00", "id ", 1)
	}
	return keys
}

// A long pipeline is several rounds.
func TestARoundHasAnEnd(t *testing.T) {
	catalog, d := logging(t)
	c := servicetest.NewClient(t, start(t, Options{DB: d, Limit: 1000}))
	var paths, replies []string
	for i := range 2*mostApplies + 10 {
		paths, replies = append(paths, "/apply?amt=1"), append(replies, fmt.Sprint(i+1, 999-i))
	}
	pipeline(t, c, paths, replies)
	states := 0
	for _, key := range keysOf(logged(t, catalog.Log())) {
		if strings.HasSuffix(key, "state") {
			states++
		}
	}
	require.GreaterOrEqual(t, states, 3)
	require.Less(t, states, 10)
	c.Is("/query", fmt.Sprint(1000-len(paths)))
}

// Of a round, a server that takes over has all calls or none: journals without the state do not
// count, whatever comes to stand in their places.
func TestARoundOfWhichAPartHasCome(t *testing.T) {
	catalog, d := logging(t)
	c := servicetest.NewClient(t, start(t, Options{DB: d, Limit: 100}))
	c.Is("/apply?amt=10", "1 90")
	before, had := len(logged(t, catalog.Log())), journals(t, d)
	pipeline(t, c, []string{"/apply?amt=1", "/apply?amt=2", "/apply?amt=3"}, []string{"2 89", "3 87", "4 84"})
	ups := logged(t, catalog.Log())
	require.Len(t, ups, before+4)
	for n := before; n <= len(ups); n++ {
		s := servicetest.NewStandby(t)
		for _, u := range ups[:n] {
			s.Take(u)
		}
		export := filepath.Join(t.TempDir(), "out")
		require.NoError(t, s.Role.Claim(true))
		f := servicetest.NewClient(t, start(t, Options{DB: s.DB, Limit: 100, Primary: s.Role, Export: export}))
		if n == len(ups) {
			f.Is("/query", "84")
			require.Equal(t, journals(t, d), journals(t, s.DB))
			f.Is("/cancel?jnlsno=4", "5 87")
			continue
		}
		f.Is("/query", "90")
		require.Equal(t, had, journals(t, s.DB), "%d of the updates", n)
		f.Is("/cancel?jnlsno=2", "0")
		f.Is("/empty", "0")
		servicetest.WaitFor(t, "the export", func() bool { text, err := os.ReadFile(export); return err == nil && string(text) == had })
		f.Is("/increase?amt=90", "90")
		f.Is("/apply?amt=7", "2 83")
		f.Is("/cancel?jnlsno=1", "3 93")
		require.Equal(t, "1 10 3\n2 7\n", journals(t, s.DB), "%d of the updates", n)
	}
}

// The journals of a round that has come in part do not pass for those of the next primary's last
// call, which has come in part as well.
func TestPartsOfTwoRoundsDoNotMix(t *testing.T) {
	for _, call := range []struct{ state, left, journals string }{
		{"83 2 1\napply 7 9999999999\n2 83\nx", "83", "1 10\n2 7\n"},
		{"83 2 1\napply 7 0\n2 83\n", "83", "1 10\n2 7\n"},
		{"100 2 1\ncancel 1 0\n2 100\n", "100", "1 10 2\n"},
	} {
		s := servicetest.NewStandby(t)
		s.Receive("quota\x00\x00state", "90 1 1")
		s.Receive("quota\x00\x00journal\x00"+number(1), "10")
		s.Receive("quota\x00\x00journal\x00"+number(2), "3") // of a round whose state has not come
		s.Receive("quota\x00\x00journal\x00"+number(3), "3")
		s.Receive("quota\x00\x00state", call.state)
		require.NoError(t, s.Role.Claim(true))
		c := servicetest.NewClient(t, start(t, Options{DB: s.DB, Limit: 100, Primary: s.Role}))
		c.Is("/decrease?amt=0", call.left)
		require.Equal(t, call.journals, journals(t, s.DB))
		if strings.HasSuffix(call.state, "x") {
			c.Is("/apply?amt=7&id=x", "2 83")
		}
	}
}

// When the commit of a round fails, no call of it has been carried out, and no reply to them leaves.
// Calls that come later are told the reason, until there is none.
func TestARoundThatIsNotCommitted(t *testing.T) {
	for name, refuse := range map[string]func(c *db.Catalog, on bool){
		"guarded": func(c *db.Catalog, on bool) { _ = c.SetGuarded(on) },
		"full": func(c *db.Catalog, on bool) {
			l := gate.Limits{Disk: 1 << 40}
			if on {
				l = gate.Limits{Disk: -1}
			}
			c.Gate().Set(l)
		},
	} {
		t.Run(name, func(t *testing.T) {
			catalog, d := logging(t)
			var logged lines
			s, err := New(Options{Options: services.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))}, DB: d, Limit: 100})
			require.NoError(t, err)
			defer s.Close()
			var one, other db.Pending
			call := func(p *db.Pending, path string) string {
				body, status := s.answer(nil, []byte(path), p)
				return string(status[:3]) + " " + string(body)
			}
			require.Equal(t, "200 1 90\n", call(&one, "/apply?amt=10"))
			require.NoError(t, one.Wait())
			require.Equal(t, "200 2 89\n", call(&one, "/apply?amt=1"))
			require.Equal(t, "200 3 87\n", call(&other, "/apply?amt=2"))
			end := catalog.Log().Last()
			refuse(catalog, true)
			require.Error(t, one.Wait())
			require.Error(t, other.Wait())
			require.NoError(t, other.Wait(), "the failure has been told")
			require.EqualValues(t, 1, logged.Load(), "nobody else says why")
			require.Contains(t, call(&one, "/apply?amt=1"), "500 ")
			require.NoError(t, one.Wait())
			require.Equal(t, "200 90\n", call(&one, "/query"))
			require.NoError(t, one.Wait())
			require.Equal(t, end, catalog.Log().Last())
			refuse(catalog, false)
			for i := range 3 {
				require.Equal(t, fmt.Sprintf("200 %d %d\n", i+2, 89-i), call(&one, "/apply?amt=1"))
				require.Equal(t, i == 0, s.calledAlone(), "the first call is committed on its own")
				require.NoError(t, one.Wait())
			}
			require.Equal(t, "1 10\n2 1\n3 1\n4 1\n", journals(t, d))
		})
	}
}

// calledAlone reports whether the quota without a name has no open round.
func (s *Server) calledAlone() bool {
	q, err := s.quotas.Get(nil, false)
	if err != nil {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open == nil
}

// An export has the journals of the open round. If the round cannot be committed, it has those
// before.
func TestAnExportKnowsTheOpenRound(t *testing.T) {
	catalog, d := logging(t)
	file := filepath.Join(t.TempDir(), "out")
	s, err := New(Options{DB: d, Limit: 100, Export: file})
	require.NoError(t, err)
	defer s.Close()
	q, err := s.quotas.Get(nil, false)
	require.NoError(t, err)
	var owed db.Pending
	e := &exporter{fs: s.exporter.fs, file: file, records: s.records, made: map[*quota]exported{}} // without its goroutine
	exports := func(want string) {
		t.Helper()
		s.answer(nil, []byte("/apply?amt=1"), &owed)
		require.NoError(t, e.exportChanged(q))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	exports("1 1\n")
	require.NoError(t, owed.Wait())
	exports("1 1\n2 1\n")
	require.NoError(t, owed.Wait())
	require.NoError(t, os.Remove(file))
	s.answer(nil, []byte("/apply?amt=1"), &owed)
	catalog.Gate().Set(gate.Limits{Disk: -1})
	exports("1 1\n2 1\n")
	require.Error(t, owed.Wait())
}

// A server that stops being the primary commits what it has answered, before another one's updates
// come.
func TestAStandbyHasNoOpenRound(t *testing.T) {
	sb := servicetest.NewStandby(t)
	require.NoError(t, sb.Role.Claim(true))
	s, err := New(Options{DB: sb.DB, Limit: 100, Primary: sb.Role})
	require.NoError(t, err)
	defer s.Close()
	var owed db.Pending
	body, _ := s.answer(nil, []byte("/apply?amt=1"), &owed)
	require.Equal(t, "1 99\n", string(body))
	sb.Receive("primary\x001", "9")
	value, _, err := sb.DB.Get(nil, nil, quotaKey("", "state"))
	require.NoError(t, err)
	require.Equal(t, "99 1 1", string(value))
	sb.Receive("quota\x00\x00state", "50 7 1")
	require.NoError(t, owed.Wait())
	body, _ = s.answer(nil, []byte("/query"), &owed)
	require.Equal(t, "50\n", string(body))
}

// follower is a Confirmer that wants one follower, which confirms nothing.
type follower struct{ refuses error }

func (follower) Required() int                            { return 1 }
func (follower) Confirmed(_, _ int) ulog.Stamp            { return 1 }
func (follower) WaitConfirmed(ulog.Stamp, int, int) error { return errors.New("not confirmed") }
func (f follower) Admits(_, _ int) error                  { return f.refuses }

// A call that is refused because a follower is missing may be tried again.
func TestACallWithoutTheFollowersThatItNeeds(t *testing.T) {
	catalog, d := logging(t)
	c := servicetest.NewClient(t, start(t, Options{DB: d, Limit: 100}))
	c.Is("/apply?amt=1", "1 99")
	catalog.Log().SetConfirmer(follower{&dberr.Error{Code: dberr.SystemError, Message: "one is missing", Err: dberr.ErrFewReplicas}}, true)
	c.Refused("/apply?amt=1", "one is missing")
	catalog.Log().SetConfirmer(nil, true)
	c.Is("/apply?amt=1", "2 98")
}

// moves calls do when a connection is about to serve its n-th request.
type moves struct {
	n  atomic.Int64
	do func(n int64)
}

func (m *moves) Away() bool                                               { m.do(m.n.Add(1)); return false }
func (m *moves) Behind(time.Duration) bool                                { return false }
func (m *moves) Move(*netio.Conn, frame.MemberKind, []byte) (bool, error) { return false, nil }

// Followers come to be needed while a round is open. What they have not confirmed is not answered.
func TestFollowersAreNeededWhileARoundIsOpen(t *testing.T) {
	for _, behind := range []string{"", "GET /query HTTP/1.1\r\n\r\n", "GET /apply?amt=1&id=x HTTP/1.1\r\n\r\n"} {
		catalog, d := logging(t)
		m := &moves{do: func(n int64) {
			if n == 3 {
				catalog.Log().SetConfirmer(follower{}, true)
			}
		}}
		c := servicetest.NewClient(t, start(t, Options{Options: services.Options{Forward: &netio.Forward{Mover: m}}, DB: d, Limit: 100}))
		c.Is("/apply?amt=1", "1 99")
		_, err := io.WriteString(c.Socket, "GET /apply?amt=1 HTTP/1.1\r\n\r\n"+"GET /query HTTP/1.1\r\n\r\n"+behind)
		require.NoError(t, err)
		text, err := io.ReadAll(c.Reader)
		require.NoError(t, err)
		require.NotContains(t, string(text), "200", "behind: %q", behind)
	}
}
