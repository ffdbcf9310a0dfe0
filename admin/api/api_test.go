package api_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/admin"
	"gotycoon/admin/api"
	"gotycoon/admin/status"
	"gotycoon/db/record"
	"gotycoon/snapshot"
)

const patience = 30 * time.Second

// readers are all paths that change nothing.
func readers() []string {
	return []string{
		"server", "samples", "databases", "databases/0/records", "databases/0/record?key=" + query("k"), "databases/0/value?key=" + query("k"),
		"replication", "cluster", "log", "snapshots", "locks", "counters", "sequences", "quotas", "slow", "facts",
	}
}

// changers are all others, with a body.
func changers() [][3]string {
	return [][3]string{
		{"POST", "databases/0/record", `{"key":"` + b64("k") + `","value":"` + b64("w") + `","old":"` + b64("v") + `"}`},
		{"POST", "databases/0/checkpoint", ""},
		{"POST", "checkpoint", ""},
		{"POST", "snapshots", ""},
		{"POST", "cluster", `{"do":"require","number":0}`},
		{"DELETE", "databases/0/record?key=" + query("k"), ""},
	}
}

type fakeSnapshots struct{ take func(context.Context) error }

// Take implements api.Snapshots.
func (f fakeSnapshots) Take(ctx context.Context) error { return f.take(ctx) }

// State implements api.Snapshots.
func (f fakeSnapshots) State() (api.SnapshotState, error) {
	return api.SnapshotState{Dir: "dir", Files: []api.SnapshotFile{}}, nil
}

func none(context.Context) error { return nil }

// TestWhoMay: strangers see nothing, readers everything but what only admins should, and only
// admins change something.
func TestWhoMay(t *testing.T) {
	s := serve(t, api.Options{}, func(l *admin.Options, src *api.Sources) {
		l.Authorize = authorize
		src.Snapshots, src.Cluster = fakeSnapshots{none}, newFakeCluster()
		src.Settings = func() []api.Setting { return []api.Setting{{Name: "secret-name", Value: "x"}} }
	})
	require.NoError(t, s.c.DB(0).Set(nil, []byte("k"), []byte("v"), record.Never))
	reader, root := "Basic cmVhZGVyOng=", "Basic cm9vdDp4"
	for _, path := range readers() {
		for user, want := range map[string]int{"": 401, reader: 200, root: 200} {
			status, text := s.ask("GET", path, "", "Authorization", user)
			require.Equal(t, want, status, "%s %s: %s", path, user, text)
		}
	}
	status, _ := s.ask("GET", "databases/0/backup", "", "Authorization", reader)
	require.Equal(t, 403, status, "a backup is for admins")
	for _, c := range changers() {
		for _, user := range []string{"", reader} {
			status, _ := s.ask(c[0], c[1], c[2], "Authorization", user, api.Header, "1")
			require.Contains(t, []int{401, 403}, status, c)
		}
	}
	value, _, err := s.c.DB(0).Get(nil, nil, []byte("k"))
	require.NoError(t, err)
	require.Equal(t, "v", string(value))
	for _, c := range changers() {
		status, text := s.ask(c[0], c[1], c[2], "Authorization", root, api.Header, "1")
		require.Equal(t, 200, status, "%s: %s", c, text)
	}
	_, text := s.ask("GET", "facts", "", "Authorization", reader)
	require.NotContains(t, text, "secret-name")
	_, text = s.ask("GET", "facts", "", "Authorization", root)
	require.Contains(t, text, "secret-name")
	_, text = s.ask("GET", "server", "", "Authorization", reader)
	require.Contains(t, text, `"fixed":"only admins may"`)
	_, text = s.ask("GET", "server", "", "Authorization", root)
	require.Contains(t, text, `"fixed":""`)
}

// TestOtherSites: pages of other sites cannot change anything through a browser, nor read where
// there are no passwords.
func TestOtherSites(t *testing.T) {
	s := serve(t, api.Options{}, func(_ *admin.Options, src *api.Sources) {
		src.Snapshots, src.Cluster = fakeSnapshots{none}, newFakeCluster()
	})
	require.NoError(t, s.c.DB(0).Set(nil, []byte("k"), []byte("v"), record.Never))
	for _, c := range changers() {
		for _, header := range [][]string{
			{},
			{api.Header, "1", "Sec-Fetch-Site", "cross-site"},
			{api.Header, "1", "Sec-Fetch-Site", "same-site"},
			{api.Header, "1", "Origin", "http://evil.example"},
			{api.Header, "1", "Host", "evil.example:1990"},
		} {
			status, text := s.ask(c[0], c[1], c[2], header...)
			require.Contains(t, []int{403, 421}, status, "%s %s: %s", c, header, text)
		}
	}
	for _, path := range readers() {
		status, _ := s.ask("GET", path, "", "Host", "evil.example")
		require.Equal(t, 421, status, path)
	}
	for _, host := range []string{"127.0.0.1:1", "localhost", "[::1]:80", "x.localhost:1"} {
		status, _ := s.ask("GET", "server", "", "Host", host)
		require.Equal(t, 200, status, host)
	}
	status, _ := s.ask("POST", "checkpoint", "", api.Header, "1", "Sec-Fetch-Site", "same-origin")
	require.Equal(t, 200, status)
}

func TestNothingChangesWhereItIsForbidden(t *testing.T) {
	s := serve(t, api.Options{Fixed: func() string { return "it is read-only" }}, func(_ *admin.Options, src *api.Sources) {
		src.Snapshots, src.Cluster = fakeSnapshots{none}, newFakeCluster()
	})
	for _, c := range changers() {
		status, text := s.change(c[0], c[1], c[2])
		require.Equal(t, 403, status, c)
		require.Contains(t, text, "it is read-only")
	}
	require.Equal(t, "it is read-only", s.get("server")["fixed"])
}

// TestRecords: creating does not overwrite, and changing and the time are exact.
func TestRecords(t *testing.T) {
	s := serve(t, api.Options{}, nil)
	body := func(key, value, rest string) string {
		return fmt.Sprintf(`{"key":%q,"value":%q%s}`, b64(key), b64(value), rest)
	}
	path, d := "databases/1/record", s.c.DB(1)
	xt := time.Now().Add(time.Hour).Unix()
	status, text := s.change("POST", path, body("\x00+/\xff", "one", fmt.Sprintf(`,"xt":%d`, xt)))
	require.Equal(t, 200, status, text)
	value, at, err := d.Get(nil, nil, []byte("\x00+/\xff"))
	require.NoError(t, err)
	require.Equal(t, "one", string(value))
	require.Equal(t, xt, at)
	for _, c := range []struct {
		body   string
		status int
		part   string
	}{
		{body("\x00+/\xff", "two", ""), 409, "already"},
		{body("\x00+/\xff", "two", `,"old":"`+b64("other")+`"`), 409, "changed meanwhile"},
		{body("none", "two", `,"old":""`), 409, "changed meanwhile"},
		{body("k", "v", `,"xt":-5`), 400, "1970"},
		{`{"key":"%"}`, 400, "cannot be read"},
		{`[`, 400, "cannot be read"},
		{body("\x00+/\xff", "two", `,"old":"`+b64("one")+`"`), 200, "done"},
		{body("empty", "", ""), 200, "done"},
		{body("empty", "full", `,"old":""`), 200, "done"},
	} {
		status, text := s.change("POST", path, c.body)
		require.Equal(t, c.status, status, "%s: %s", c.body, text)
		require.Contains(t, text, c.part)
	}
	_, at, err = d.Get(nil, nil, []byte("\x00+/\xff"))
	require.NoError(t, err)
	require.Equal(t, record.MaxXT, at, "without a time it lasts")

	one := s.get(path + "?key=" + query("\x00+/\xff"))
	require.Equal(t, b64("two"), one["value"])
	require.Nil(t, one["xt"])
	_, raw := s.ask("GET", "databases/1/value?key="+query("empty"), "")
	require.Equal(t, "full", raw)

	status, _ = s.change("DELETE", path+"?key="+query("empty"), "")
	require.Equal(t, 200, status)
	for method, where := range map[string]string{"DELETE": path + "?key=" + query("empty"), "GET": path + "?key=" + query("empty")} {
		status, text := s.change(method, where, "")
		require.Equal(t, 404, status)
		require.Contains(t, text, "no such record")
	}
	for path, want := range map[string]int{"databases/7/records": 404, "databases/x/records": 404, "databases/1/record": 400, "databases/1/record?key=*": 400} {
		status, _ := s.ask("GET", path, "")
		require.Equal(t, want, status, path)
	}
}

func TestPagesOfRecords(t *testing.T) {
	s := serve(t, api.Options{}, nil)
	for i := range 250 {
		require.NoError(t, s.c.DB(0).Set(nil, fmt.Appendf(nil, "k%03d", i), bytes.Repeat([]byte("x"), 1000), record.Never))
	}
	path, seen := "databases/0/records?limit=100&prefix="+query("k1"), 0
	first := s.get(path)
	records := first["records"].([]any)
	require.Len(t, records, 100)
	require.Equal(t, b64("k100"), records[0].(map[string]any)["key"])
	require.EqualValues(t, 1000, records[0].(map[string]any)["size"])
	for after := ""; ; seen++ {
		page := s.get("databases/0/records?limit=70" + after)
		if page["next"] == nil {
			break
		}
		after = "&after=" + query(decoded(t, page["next"].(string)))
	}
	require.Equal(t, 3, seen)
}

// TestBackup: what is downloaded is a whole snapshot.
func TestBackup(t *testing.T) {
	s := serve(t, api.Options{}, nil)
	want := map[string]string{}
	for i := range 5000 {
		key := fmt.Sprintf("key%d", i)
		want[key] = strings.Repeat("v", i%50)
		require.NoError(t, s.c.DB(i%2).Set(nil, []byte(key), []byte(want[key]), record.Never))
	}
	got := map[string]string{}
	for i := range 2 {
		for _, compressor := range []string{"", "none", "zstd"} {
			status, body := s.ask("GET", fmt.Sprintf("databases/%d/backup?compressor=%s", i, compressor), "")
			require.Equal(t, 200, status)
			r, err := snapshot.NewReader(strings.NewReader(body))
			require.NoError(t, err)
			require.EqualValues(t, 2500, r.Header().Count)
			readAll(t, r, got)
		}
	}
	require.Equal(t, want, got)
}

// TestABackupThatEndsEarly: the client sees that it has a part only, and nobody takes it for a
// mistake of the server when the client goes away.
func TestABackupThatEndsEarly(t *testing.T) {
	var log lines
	logger := slog.New(slog.NewTextHandler(&log, nil))
	s := serve(t, api.Options{Logger: logger}, func(l *admin.Options, _ *api.Sources) { l.Logger = logger })
	for i := range 64 { // more than sockets hold
		value := make([]byte, 1<<20)
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(value)
		require.NoError(t, s.c.DB(1).Set(nil, fmt.Append(nil, i), value, record.Never))
	}
	begin := func() (*bufio.Reader, net.Conn) {
		conn, err := net.Dial("tcp", s.addr)
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		_, err = io.WriteString(conn, "GET /api/databases/1/backup?compressor=none HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		require.NoError(t, err)
		in := bufio.NewReader(conn)
		_, err = in.ReadString('\n')
		require.NoError(t, err)
		return in, conn
	}
	_, conn := begin()
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "console: backup of database 1: ") }, time.Minute, time.Millisecond)
	require.NotContains(t, log.String(), "ERROR")

	in, conn := begin()
	defer conn.Close()
	go s.api.Close()
	// The client reads on when the API ends, not before: it would have the whole backup.
	require.Eventually(t, func() bool { status, _ := s.ask("GET", "server", ""); return status == http.StatusServiceUnavailable }, patience, time.Millisecond)
	rest, err := io.ReadAll(in)
	if err == nil {
		require.NotContains(t, string(rest[max(0, len(rest)-200):]), "0\r\n\r\n", "the end of a whole reply")
	}
	require.NotContains(t, log.String(), "panic")
	require.Contains(t, log.String(), "level=ERROR")
}

// lines is a log that is written and read at a time.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// TestLongTasks: they outlive their request, do not run twice at a time, tell what has become of
// them, and end with the API.
func TestLongTasks(t *testing.T) {
	begun, failing := make(chan struct{}, 1), make(chan error)
	s := serve(t, api.Options{}, func(_ *admin.Options, src *api.Sources) {
		src.Snapshots = fakeSnapshots{func(ctx context.Context) error {
			begun <- struct{}{}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case err := <-failing:
				return err
			}
		}}
	})
	status, text := s.change("POST", "snapshots", "")
	require.Equal(t, 200, status, text)
	require.Contains(t, text, `"running":true`)
	<-begun
	status, text = s.change("POST", "snapshots", "")
	require.Equal(t, 409, status, text)
	failing <- errors.New("the disk is full")
	require.Eventually(t, func() bool {
		task := s.get("snapshots")["task"].(map[string]any)
		return task["running"] == false && task["error"] == "the disk is full"
	}, patience, time.Millisecond)
	status, _ = s.change("POST", "snapshots", "")
	require.Equal(t, 200, status)
	<-begun
	s.api.Close() // which waits for it
	status, text = s.ask("GET", "snapshots", "")
	require.Equal(t, 503, status)
	require.Contains(t, text, "starting or stopping")
}

func TestBeforeThereIsAnything(t *testing.T) {
	a := api.New(api.Options{Ready: func() []string { return []string{"restoring"} }})
	l, err := admin.New(admin.Options{Addr: "127.0.0.1:0", Routes: a.Mount})
	require.NoError(t, err)
	l.Start()
	defer func() { require.NoError(t, l.Close()) }()
	s := &served{t: t, addr: l.Addr().String()}
	status, text := s.ask("GET", "server", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, text, "restoring")
	http.DefaultClient.CloseIdleConnections()
	a.Close()
}

// TestOff: what is off says how to switch it on.
func TestOff(t *testing.T) {
	s := serve(t, api.Options{}, nil)
	for path, option := range map[string]string{
		"snapshots": "-bgs", "locks": "-lock-port", "counters": "-counter-port", "sequences": "-sequence-port", "quotas": "-quota-port",
		"slow": "-slow", "log": "-ulog",
	} {
		require.Contains(t, s.get(path)["off"], option, path)
	}
	r := s.get("replication")
	require.Contains(t, r["masterOff"], "-mhost")
	require.Contains(t, r["replicasOff"], "-ulog")
}

func TestSamplesAndReplication(t *testing.T) {
	s := serve(t, api.Options{Version: "9"}, func(_ *admin.Options, src *api.Sources) {
		src.Follower = func() status.Follower {
			return status.Follower{Following: true, State: "streaming", Seconds: 1.5, Records: status.Unknown, Position: time.UnixMilli(5)}
		}
		src.Master = func() api.Master { return api.Master{Address: "there:1978"} }
	})
	m := s.get("replication")["master"].(map[string]any)
	require.Equal(t, "there:1978", m["address"])
	require.InDelta(t, 1.5, m["seconds"], 1e-9)
	require.Nil(t, m["records"], "not known is not 0")
	require.Eventually(t, func() bool { return len(s.get("samples")["samples"].([]any)) >= 2 }, patience, 50*time.Millisecond)
	all := s.get("samples")["samples"].([]any)
	first := all[0].(map[string]any)
	require.InDelta(t, 1.5, first["lag"], 1e-9)
	require.Greater(t, first["rss"], 0.0)
	require.Nil(t, first["p50"], "there were no requests")
	later := s.get(fmt.Sprintf("samples?since=%v", first["n"]))["samples"].([]any)
	require.False(t, slices.ContainsFunc(later, func(x any) bool { return x.(map[string]any)["n"] == first["n"] }))
	require.NotEmpty(t, later)
	require.Equal(t, "9", s.get("server")["version"])
}

func TestWhatTheServerDoesNotAllow(t *testing.T) {
	s := serve(t, api.Options{Allow: func(*http.Request) error { return errors.New("not from there") }}, nil)
	for _, path := range readers() {
		status, text := s.ask("GET", path, "")
		require.Equal(t, 403, status, path)
		require.Contains(t, text, "not from there")
	}
}
