package httpapi_test

import (
	"encoding/base64"
	"io"
	"iter"
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
	"gotycoon/httpapi"
)

// guardedServer has databases ":" and "%" and an access file in which each name's password is the
// name.
func guardedServer(t *testing.T, names []string, rules ...string) (s *server, path string) {
	t.Helper()
	return guardedServerWith(t, names, httpapi.Options{}, rules...)
}

func guardedServerWith(t *testing.T, names []string, o httpapi.Options, rules ...string) (s *server, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "access")
	writeAccess(t, path, names, rules...)
	guard, err := access.Open(access.Options{Path: path})
	require.NoError(t, err)
	t.Cleanup(guard.Close)
	s = newServerWith(t, db.Options{}, o, ":", "%")
	s.access = guard
	return s, path
}

func writeAccess(t *testing.T, path string, names []string, rules ...string) {
	t.Helper()
	var lines []string
	for _, name := range names {
		hash, err := bcrypt.GenerateFromPassword([]byte(name), bcrypt.MinCost)
		require.NoError(t, err)
		lines = append(lines, name+":"+string(hash))
	}
	text := strings.Join(append(lines, rules...), "\n")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// as adds the credentials of a user to a request.
func as(name, request string) string {
	if name == "" {
		return request
	}
	header := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+name)) + "\r\n"
	return strings.Replace(request, "\r\n", "\r\n"+header, 1)
}

func TestRightsOfProcedures(t *testing.T) {
	names := []string{"reader", "writer", "editor", "eu", "copier", "root"}
	s, _ := guardedServer(t, names,
		"allow reader read", "allow writer write", "allow editor read,write", "allow eu read,write db=0 prefix=eu:",
		"allow copier replicate", "allow root admin")
	key, record := []string{"key", "eu:1"}, []string{"key", "eu:1", "value", "v"}
	none := []string(nil)
	for _, row := range []struct {
		procedure string
		in        []string
		allowed   string
	}{
		{"void", none, "reader writer editor eu copier root"},
		{"echo", none, "reader writer editor eu copier root"},
		{"get", key, "reader editor eu root"},
		{"check", key, "reader editor eu root"},
		{"set", record, "writer editor eu root"},
		{"add", record, "writer editor eu root"},
		{"replace", record, "writer editor eu root"},
		{"append", record, "writer editor eu root"},
		{"cas", []string{"key", "eu:1", "nval", "x"}, "editor eu root"},
		{"increment", []string{"key", "eu:n", "num", "1"}, "editor eu root"},
		{"increment_double", []string{"key", "eu:f", "num", "1"}, "editor eu root"},
		{"seize", key, "editor eu root"},
		{"remove", key, "writer editor eu root"},
		{"get", []string{"key", "us:1"}, "reader editor root"},
		{"set", []string{"key", "us:1", "value", "v"}, "writer editor root"},
		{"get", []string{"key", "eu:1", "DB", "1"}, "reader editor root"},
		{"get_bulk", []string{"_eu:1", "", "_eu:2", ""}, "reader editor eu root"},
		{"get_bulk", []string{"_eu:1", "", "_us:2", ""}, "reader editor root"},
		{"set_bulk", []string{"_eu:1", "", "_us:2", ""}, "writer editor root"},
		{"set_bulk", []string{"_eu:1", "", "_eu:2", ""}, "writer editor eu root"},
		{"remove_bulk", []string{"_us:1", "", "_eu:2", ""}, "writer editor root"},
		{"match_prefix", []string{"prefix", "eu:"}, "reader editor eu root"},
		{"match_prefix", []string{"prefix", "eu:1"}, "reader editor eu root"},
		{"match_prefix", []string{"prefix", "e"}, "reader editor root"},
		{"match_regex", []string{"regex", "^eu:"}, "reader editor root"},
		{"match_similar", []string{"origin", "eu:1"}, "reader editor root"},
		{"cur_jump", []string{"CUR", "1"}, "reader editor root"},
		{"cur_jump_back", []string{"CUR", "1", "DB", "1"}, "reader editor root"},
		{"cur_check", []string{"CUR", "1"}, "reader editor root"},
		{"cur_get", []string{"CUR", "1"}, "reader editor root"},
		{"cur_get_key", []string{"CUR", "1"}, "reader editor root"},
		{"cur_get_value", []string{"CUR", "1"}, "reader editor root"},
		{"cur_step", []string{"CUR", "1"}, "reader editor root"},
		{"cur_step_back", []string{"CUR", "1"}, "reader editor root"},
		{"cur_set_value", []string{"CUR", "1", "value", ""}, "writer editor root"},
		{"cur_remove", []string{"CUR", "1"}, "writer editor root"},
		{"cur_seize", []string{"CUR", "1"}, "editor root"},
		{"cur_delete", []string{"CUR", "1"}, "reader writer editor eu copier root"},
		{"status", none, "reader editor root"},
		{"report", none, "reader editor root"},
		{"vacuum", none, "writer editor root"},
		{"compact", none, "writer editor root"},
		{"synchronize", none, "writer editor root"},
		{"synchronize", []string{"command", "no/such"}, "root"},
		{"play_script", []string{"name", "f"}, "editor root"},
		{"monitor", []string{"seconds", "0"}, "root"},
		{"hotkeys", []string{"seconds", "0"}, "root"},
		{"ulog_list", none, "copier root"},
		{"ulog_remove", none, "root"},
		{"tune_replication", none, "root"},
		{"void", []string{"SIGNAL", "s"}, "writer editor root"},
		{"void", []string{"WAIT", "s", "WAITTIME", "0.001"}, "reader editor root"},
		{"no_such_procedure", none, "reader writer editor eu copier root"},
		{"no_such_procedure", []string{"SIGNAL", "s"}, "writer editor root"},
		{"clear", none, "writer editor root"},
	} {
		for _, name := range names {
			r := s.dial(t).do(as(name, rpc(row.procedure, row.in...)))
			if strings.Contains(" "+row.allowed+" ", " "+name+" ") {
				require.NotContains(t, "401 403", r.status[:3], "%s of %s: %s", row.procedure, name, r.body)
			} else {
				require.Equal(t, "403 Forbidden", r.status, "%s of %s %v", row.procedure, name, row.in)
				require.Contains(t, r.body, "ERROR\taccess denied: "+name+" has no right to ")
			}
		}
		r := s.dial(t).do(rpc(row.procedure, row.in...))
		require.Equal(t, "401 Unauthorized", r.status)
		require.Equal(t, access.Challenge, r.header("WWW-Authenticate"))
	}
}

func TestRightsOfREST(t *testing.T) {
	names := []string{"reader", "writer", "eu"}
	s, _ := guardedServer(t, names, "allow reader read", "allow writer write db=%25", "allow eu read,write db=: prefix=eu%3A")
	for _, row := range []struct{ name, request, status, body string }{
		{"writer", "PUT /%25/a HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", "201 Created", ""},
		{"writer", "PUT /a HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", "403 Forbidden",
			"access denied: writer has no right to write for this key of database 0 (:)\n"},
		{"writer", "GET /%25/a HTTP/1.1\r\n\r\n", "403 Forbidden", "access denied: writer has no right to read for this key of database 1 (%)\n"},
		{"reader", "GET /%25/a HTTP/1.1\r\n\r\n", "200 OK", "x"},
		{"reader", "HEAD /%25/a HTTP/1.1\r\n\r\n", "200 OK", ""},
		{"writer", "HEAD /%25/a HTTP/1.1\r\n\r\n", "403 Forbidden", ""},
		{"reader", "DELETE /%25/a HTTP/1.1\r\n\r\n", "403 Forbidden", "access denied: reader has no right to write for this key of database 1 (%)\n"},
		{"eu", "PUT /eu:1 HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", "201 Created", ""},
		{"eu", "GET /e%75:1 HTTP/1.1\r\n\r\n", "200 OK", "x"},
		{"eu", "GET /us:1 HTTP/1.1\r\n\r\n", "403 Forbidden", "access denied: eu has no right to read for this key of database 0 (:)\n"},
		{"eu", "GET /%25/eu:1 HTTP/1.1\r\n\r\n", "403 Forbidden", "access denied: eu has no right to read for this key of database 1 (%)\n"},
		{"eu", "GET /nodb/eu:1 HTTP/1.1\r\n\r\n", "400 Bad Request", "no such database\n"},
		{"eu", "PATCH /us:1 HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "501 Not Implemented", ""},
	} {
		c := s.dial(t)
		r := c.do(as(row.name, row.request))
		require.Equal(t, row.status, r.status, row)
		require.Equal(t, row.body, r.body, row)
		require.Equal(t, "401 Unauthorized", c.do(row.request).status, "the next request has its own credentials")
	}
}

// A client who may do nothing is answered before the body arrives, so the body cannot fill the
// memory.
func TestTheBodyOfAStrangerIsNotRead(t *testing.T) {
	s, _ := guardedServer(t, nil, "allow anyone read from=192.0.2.1")
	c := s.dial(t)
	r := c.do("PUT /a HTTP/1.1\r\nContent-Length: 200000000\r\n\r\n")
	require.Equal(t, "401 Unauthorized", r.status)
	require.Equal(t, "close", r.header("Connection"))
	require.Equal(t, "access denied: this needs a user and password, a token, or a certificate\n", r.body)
	c.requireEnd()
	require.Contains(t, s.log.String(), "PUT /a HTTP/1.1: 401")
}

// A refused call sends no signal.
func TestARefusedCallSendsNoSignal(t *testing.T) {
	s, _ := guardedServer(t, []string{"reader"}, "allow reader read")
	done := make(chan bool, 1)
	go func() { done <- s.signals.Wait("s", 20*time.Second) }()
	require.Eventually(t, func() bool { return s.signals.Waiting("s") == 1 }, 20*time.Second, time.Millisecond)
	for _, procedure := range []string{"set", "void", "nothing"} {
		require.Equal(t, "403 Forbidden", s.dial(t).do(as("reader", rpc(procedure, "key", "a", "value", "b", "SIGNAL", "s"))).status)
	}
	require.Equal(t, 1, s.signals.Waiting("s"))
	s.signals.Shutdown()
	require.False(t, <-done)
}

func TestChangesHoldFromTheNextRequestOn(t *testing.T) {
	s, path := guardedServer(t, []string{"anna"}, "allow anna read,write")
	c := s.dial(t)
	set := rpc("set", "key", "a", "value", "b")
	require.Equal(t, "200 OK", c.do(as("anna", set)).status)
	require.Equal(t, "200 OK", c.do(as("anna", rpc("cur_jump", "CUR", "1"))).status)
	writeAccess(t, path, []string{"anna"}, "allow anna read db=1")
	s.access.Reload()
	require.Equal(t, "403 Forbidden", c.do(as("anna", set)).status)
	require.Equal(t, "403 Forbidden", c.do(as("anna", rpc("cur_get", "CUR", "1", "DB", "1"))).status, "the cursor's own database counts")
	writeAccess(t, path, []string{"berta"}, "allow berta read")
	s.access.Reload()
	require.Equal(t, "401 Unauthorized", c.do(as("anna", set)).status)
	c.requireEnd()
}

// guardedHot returns a function that serves a get with credentials.
func guardedHot(tb testing.TB) func() {
	hash, err := bcrypt.GenerateFromPassword([]byte("anna"), bcrypt.MinCost)
	require.NoError(tb, err)
	path := filepath.Join(tb.TempDir(), "access")
	require.NoError(tb, os.WriteFile(path, []byte("anna:"+string(hash)+"\nallow anna read db=0 prefix=key"), 0o600))
	s := hotServer(tb)
	s.access, err = access.Open(access.Options{Path: path})
	require.NoError(tb, err)
	tb.Cleanup(s.access.Close)
	return hotSession(tb, s, as("anna", "GET /key1 HTTP/1.1\r\nHost: localhost\r\nUser-Agent: benchmark\r\n\r\n"), nil)
}

func BenchmarkServeOneWithCredentials(b *testing.B) {
	serve := guardedHot(b)
	b.ReportAllocs()
	for b.Loop() {
		serve()
	}
}

func TestKnownCredentialsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("pools do not work under the race detector")
	}
	serve := guardedHot(t)
	for range 100 {
		serve()
	}
	require.LessOrEqual(t, testing.AllocsPerRun(1000, serve), 0.0)
}

// A request that waits for a signal, or whose body arrives slowly, has the rights of the moment
// when it goes on.
func TestRightsTakenAwayWhileARequestWaits(t *testing.T) {
	s, path := guardedServer(t, []string{"anna"}, "allow anna read,write")
	c := s.dial(t)
	require.Equal(t, "200 OK", c.do(as("anna", rpc("set", "key", "a", "value", "b"))).status)
	waiter, rest := s.dial(t), s.dial(t)
	waiter.send(as("anna", rpc("get", "key", "a", "WAIT", "go", "WAITTIME", "60")))
	eventually(t, s.signals, "go", 1)
	// send would not wait, and the last byte could overtake this part.
	_, err := io.WriteString(rest.conn, as("anna", "PUT /a HTTP/1.1\r\nContent-Length: 2\r\n\r\nx"))
	require.NoError(t, err)
	writeAccess(t, path, []string{"anna"}, "allow anna read db=1")
	s.access.Reload()
	rest.send("y")
	require.Equal(t, 1, s.signals.Signal("go", false))
	require.Equal(t, "403 Forbidden", waiter.receive(false).status)
	require.Equal(t, "403 Forbidden", rest.receive(false).status)
	writeAccess(t, path, []string{"anna"}, "allow anna read,write")
	s.access.Reload()
	require.Equal(t, "value\tb\n", c.do(as("anna", rpc("get", "key", "a"))).body)
}

// An update may wait for another client's transaction, and a script may wait or work for long. What
// they do and answer afterwards needs the rights of that moment.
func TestRightsTakenAwayWhileAnUpdateWaits(t *testing.T) {
	s, path := guardedServer(t, []string{"anna"}, "allow anna read,write")
	d := s.catalog.DB(1)
	tx, err := d.Begin(nil, false)
	require.NoError(t, err)
	var waiting []*client
	for _, request := range []string{
		rpc("set", "DB", "1", "key", "a", "value", "b"), rpc("set_bulk", "DB", "1", "_a", "b"), "PUT /1/a HTTP/1.1\r\nContent-Length: 1\r\n\r\nb",
	} {
		c := s.dial(t)
		c.send(as("anna", request))
		waiting = append(waiting, c)
	}
	writeAccess(t, path, []string{"anna"}, "allow anna read,write db=0")
	s.access.Reload()
	require.NoError(t, tx.Abort())
	for _, c := range waiting {
		require.Equal(t, "403 Forbidden", c.receive(false).status)
	}
	n, err := d.Count(nil)
	require.NoError(t, err)
	require.Zero(t, n)
}

// scripts stands for the server's Lua script.
type scripts func(heed db.Heed, owed *db.Pending) (output string, status int)

// Call implements httpapi.Scripts.
func (f scripts) Call(heed db.Heed, owed *db.Pending, _ string, _ iter.Seq2[[]byte, []byte], out func(key, value []byte)) int {
	output, status := f(heed, owed)
	if status == 0 {
		out([]byte("told"), []byte(output))
	}
	return status
}

func TestRightsTakenAwayWhileAScriptRuns(t *testing.T) {
	var d *db.DB
	for name, rest := range map[string]scripts{
		"ends": func(db.Heed, *db.Pending) (string, int) { return "secret", 0 },
		"heeds": func(heed db.Heed, _ *db.Pending) (string, int) {
			if heed() != nil {
				return "", 4
			}
			return "secret", 0
		},
		"stores": func(_ db.Heed, owed *db.Pending) (string, int) {
			first := d.Set(owed, []byte("a"), []byte("new"), record.Never)
			if second := d.Set(owed, []byte("a"), []byte("new"), record.Never); first == nil || second == nil {
				return "stored", 0
			}
			return "not stored", 0
		},
	} {
		var change func()
		s, path := guardedServerWith(t, []string{"anna"}, httpapi.Options{Scripts: scripts(func(heed db.Heed, owed *db.Pending) (string, int) {
			change()
			return rest(heed, owed)
		})}, "allow anna read,write")
		d, change = s.catalog.DB(0), func() {}
		c, play := s.dial(t), as("anna", rpc("play_script", "name", "f"))
		require.Contains(t, c.do(play).body, "_told", name)
		require.NoError(t, d.Set(nil, []byte("a"), []byte("old"), record.Never))
		change = func() {
			writeAccess(t, path, []string{"anna"}, "allow anna read")
			s.access.Reload()
		}
		reply := c.do(play)
		require.Equal(t, "403 Forbidden", reply.status, name)
		require.NotContains(t, reply.body, "_told", name)
		value, _, err := d.Get(nil, nil, []byte("a"))
		require.NoError(t, err)
		require.Equal(t, "old", string(value), name)
	}
}

// setter is a configuration that remembers who has changed it.
type setter struct{ who []string }

func (*setter) Rows(string) (names, values []string, found bool) { return nil, nil, false }

func (s *setter) Set(_, _, who string) (lasts string, err error) {
	s.who = append(s.who, who)
	return "yes", nil
}

// The log shall tell who has changed an option: the user, and from where.
func TestWhoChangesTheConfiguration(t *testing.T) {
	c := new(setter)
	s, _ := guardedServerWith(t, []string{"root"}, httpapi.Options{Config: c}, "allow root admin", "allow anyone admin")
	for _, user := range []string{"root", ""} {
		r := s.dial(t).do(as(user, rpc("config_set", "name", "tout", "value", "30")))
		require.Equal(t, "200 OK", r.status, r.body)
	}
	require.Equal(t, []string{"root at pipe", "pipe"}, c.who)
}
