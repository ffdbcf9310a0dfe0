package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/httpapi"
	"gotycoon/internal/netio"
	"gotycoon/replication"
	"gotycoon/ulog"
)

// feeds has watches begun by a source of the server's log, as a server does.
type feeds struct{ source *replication.Source }

// Watch implements httpapi.Watches.
func (f *feeds) Watch(after ulog.Stamp, now bool, since ulog.Stamp, required int, room func(int) error) (httpapi.Watch, error) {
	w, err := f.source.Watch(after, now, since, required, room)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// watched is a server with an update log whose clients can watch.
type watched struct {
	*server
	stop   func() // ends the watches
	quorum *replication.Quorum
}

func newWatched(t testing.TB, ho httpapi.Options, exprs ...string) *watched {
	t.Helper()
	return newWatchedIn(t, t.TempDir(), ho, exprs...)
}

// newWatchedIn has the update log in a directory.
func newWatchedIn(t testing.TB, logDir string, ho httpapi.Options, exprs ...string) *watched {
	t.Helper()
	done := make(chan struct{})
	w, f := &watched{stop: sync.OnceFunc(func() { close(done) })}, new(feeds)
	ho.Watches = f
	w.server = newServerWith(t, db.Options{LogDir: logDir, SID: 1, LogLimit: 4 << 10}, ho, exprs...)
	log := w.catalog.Log()
	w.quorum = replication.NewQuorum(replication.QuorumOptions{Log: log, Timeout: 20 * time.Second})
	f.source = replication.NewSource(replication.SourceOptions{Log: log, SID: 1, Done: done, Quorum: w.quorum})
	t.Cleanup(w.stop)
	return w
}

func (w *watched) set(t testing.TB, key, value string) {
	t.Helper()
	require.NoError(t, w.catalog.DB(0).Set(nil, []byte(key), []byte(value), record.Never))
}

// event is one event of a stream.
type event struct {
	Event, TS, Reason, Error string
	Key, Value               any
	XT                       int64
}

// stream reads the events of a watch.
type stream struct {
	*client
	lines *bufio.Scanner
}

// watch begins a watch, which must be accepted.
func (w *watched) watch(t testing.TB, request string) *stream {
	t.Helper()
	c := w.dial(t)
	r := c.send(request).receive(true)
	require.Equal(t, "200 OK", r.status)
	require.Equal(t, "chunked", r.header("Transfer-Encoding"))
	require.Equal(t, "application/x-ndjson", r.header("Content-Type"))
	lines := bufio.NewScanner(httputil.NewChunkedReader(c.in))
	lines.Buffer(nil, 1<<24)
	return &stream{c, lines}
}

func (s *stream) next() (e event) {
	s.t.Helper()
	require.True(s.t, s.lines.Scan(), s.lines.Err())
	require.NoError(s.t, json.Unmarshal(s.lines.Bytes(), &e), s.lines.Text())
	return e
}

// require checks the next event by its name and key.
func (s *stream) require(name, key string) event {
	s.t.Helper()
	e := s.next()
	require.Equal(s.t, name, e.Event, "%+v", e)
	if key != "" {
		require.Equal(s.t, key, e.Key)
	}
	return e
}

// requireOver checks that the stream has an end, and that the connection has one.
func (s *stream) requireOver(reason string) event {
	s.t.Helper()
	e := s.require("end", "")
	require.Equal(s.t, reason, e.Reason)
	require.False(s.t, s.lines.Scan())
	require.NoError(s.t, s.lines.Err(), "the last chunk has come")
	return e
}

func watchOf(params string) string { return "GET /rpc/watch?" + params + " HTTP/1.1\r\n\r\n" }

func TestWatch(t *testing.T) {
	w := newWatched(t, httpapi.Options{}, "%", "%#ktopts=p")
	w.set(t, "tea", "before")
	s := w.watch(t, post("/rpc/watch", "application/json", `{"prefix":"t"}`))
	begin := s.require("begin", "")
	d := w.catalog.DB(0)
	w.set(t, "tea", "green")
	w.set(t, "coffee", "black")
	require.NoError(t, w.catalog.DB(1).Set(nil, []byte("tea"), []byte("x"), record.Never))
	require.NoError(t, d.Set(nil, []byte("t\xff"), []byte("\x00\xff"), 100))
	require.NoError(t, d.Remove(nil, []byte("tea")))
	require.NoError(t, d.Clear(nil))
	first := s.require("set", "tea")
	require.Equal(t, "green", first.Value)
	require.Greater(t, first.TS, begin.TS)
	raw := s.require("set", "")
	require.Equal(t, map[string]any{"base64": "dP8="}, raw.Key)
	require.Equal(t, map[string]any{"base64": "AP8="}, raw.Value)
	require.Equal(t, epoch.Unix()+100, raw.XT)
	s.require("remove", "tea")
	last := s.require("clear", "")
	require.NoError(t, s.conn.Close())

	// Whoever has had everything up to the first change goes on with the second one.
	s = w.watch(t, watchOf("prefix=t&keys=&ts="+first.TS))
	require.Equal(t, first.TS, s.require("begin", "").TS)
	require.Nil(t, s.require("set", "").Value)
	s.require("remove", "tea")
	require.Equal(t, last.TS, s.require("clear", "").TS)
	w.set(t, "t2", strings.Repeat("é", 100_000))
	s.require("set", "t2")
	w.stop()
	s.requireOver("stopping")

	s = w.watch(t, watchOf("DB=1&ts=0"))
	s.require("begin", "")
	s.requireOver("stopping")
}

// A database without expiration times has values as they are.
func TestWatchPersistent(t *testing.T) {
	w := newWatched(t, httpapi.Options{}, "%#ktopts=p")
	s := w.watch(t, watchOf(""))
	s.require("begin", "")
	w.set(t, "a", "value")
	require.Equal(t, "value", s.require("set", "a").Value)
}

func TestWatchAsServerSentEvents(t *testing.T) {
	w := newWatched(t, httpapi.Options{})
	c := w.dial(t)
	r := c.send("GET /rpc/watch?heartbeat=0.1 HTTP/1.0\r\nAccept: text/event-stream\r\nLast-Event-ID: 0\r\n\r\n").receive(true)
	require.Equal(t, "text/event-stream", r.header("Content-Type"))
	require.Empty(t, r.header("Transfer-Encoding"), "HTTP/1.0 has no chunks")
	w.set(t, "a", "1\n2")
	const heartbeat = ": heartbeat\n"
	text := ""
	for !strings.HasSuffix(text, "\n\n"+heartbeat) || !strings.Contains(text, "event: set") {
		line, err := c.in.ReadString('\n')
		require.NoError(t, err)
		text += line
	}
	early := `(?:: heartbeat\nid: 0\n\n)*` // on a slow machine some come before the update
	require.Regexp(t, `(?s)^id: 0\nevent: begin\ndata: {"event":"begin","ts":"0"}\n\n`+early+
		`id: (\d+)\nevent: set\ndata: {"event":"set","ts":"\d+","key":"a","value":"1\\n2"}\n\n: heartbeat\n`, text)
	w.stop()
	rest, _ := io.ReadAll(c.in)
	require.Contains(t, string(rest), "\nevent: end\ndata: {\"event\":\"end\"")
}

// A client of a prefix that never changes moves on with heartbeats.
func TestWatchHeartbeats(t *testing.T) {
	w := newWatched(t, httpapi.Options{})
	s := w.watch(t, watchOf("prefix=none&heartbeat=0.1"))
	begin := s.require("begin", "")
	w.set(t, "a", "1")
	beat := s.require("heartbeat", "")
	for beat.TS == begin.TS { // on a slow machine some come before the update
		beat = s.require("heartbeat", "")
	}
	require.Greater(t, beat.TS, begin.TS)
}

func TestWatchesThatAreRefused(t *testing.T) {
	w := newWatched(t, httpapi.Options{MaxWatches: 1})
	for params, want := range map[string]string{
		"ts=x":                   "400 invalid parameters: ts must be a time stamp, or now",
		"ts=-1":                  "400 invalid parameters: ts must be",
		"ts=9999999999999999999": "400 invalid parameters: ts=9999999999999999999 is newer than the update log",
		"heartbeat=0":            "400 invalid parameters: heartbeat must be 0.1 to 60 seconds",
		"heartbeat=nan":          "400 invalid parameters: heartbeat",
		"DB=9":                   "400 no such database",
	} {
		r := w.dial(t).do(with(acceptJSON, watchOf(params)))
		var e struct{ Error string }
		require.NoError(t, json.Unmarshal([]byte(r.body), &e))
		require.True(t, strings.HasPrefix(r.status[:3]+" "+e.Error, want), "%s: %s", params, r.body)
	}
	status, body := newServer(t).dial(t).call("watch")
	require.Equal(t, "501", status)
	require.Equal(t, "ERROR\tthe server keeps no update log to watch (-ulog, -sid)\n", body)

	s := w.watch(t, watchOf(""))
	s.require("begin", "")
	status, body = w.dial(t).call("watch")
	require.Equal(t, "503", status)
	require.Contains(t, body, "too many clients watch")
	w.stop()
	s.requireOver("stopping")
	require.Eventually(t, func() bool { // the place is free again when the former stream is over
		r := w.dial(t).send(watchOf("")).receive(true)
		return r.status == "200 OK"
	}, 10*time.Second, time.Millisecond)
}

// No client takes all places, however many connections it makes; a few are for everybody.
func TestWatchesAreShared(t *testing.T) {
	w := newWatched(t, httpapi.Options{MaxWatches: 40})
	path := filepath.Join(t.TempDir(), "access")
	names := []string{"anna", "bert", "cyd"}
	writeAccess(t, path, names, "allow anna read", "allow bert read", "allow cyd read", "allow anyone read")
	guard, err := access.Open(access.Options{Path: path})
	require.NoError(t, err)
	t.Cleanup(guard.Close)
	w.access = guard
	open := map[string][]*client{}
	for _, row := range []struct {
		user string
		may  int
		then string
	}{
		{"anna", 20, "user anna has 20 of them, and the last 20 are for others"},
		{"bert", 16, "user bert has 16 of them, and the last 4 are for others"},
		{"", 4, "too many clients watch this server now (-max-watches)"},
		{"cyd", 0, "too many clients watch this server now (-max-watches)"},
	} {
		for range row.may {
			c := w.dial(t)
			require.Equal(t, "200 OK", c.send(as(row.user, watchOf("keys="))).receive(true).status)
			open[row.user] = append(open[row.user], c)
		}
		r := w.dial(t).do(as(row.user, watchOf("")))
		require.Equal(t, "503 Service Unavailable", r.status)
		require.Contains(t, r.body, row.then)
	}
	require.EqualValues(t, 40, w.counts.Watches.Load())
	require.EqualValues(t, 4, w.counts.WatchesRefused.Load())
	for _, c := range open["anna"] {
		require.NoError(t, c.conn.Close())
	}
	w.set(t, "a", "1") // a pipe notices with the next write that its other end is closed
	require.Eventually(t, func() bool { return w.counts.Watches.Load() == 20 }, 10*time.Second, time.Millisecond)
	require.Equal(t, "200 OK", w.dial(t).send(as("cyd", watchOf(""))).receive(true).status)
	w.stop()
}

// Updates that have been removed from the log are missed, and the client is told.
func TestWatchBehindTheLog(t *testing.T) {
	w := newWatched(t, httpapi.Options{})
	s := w.watch(t, watchOf(""))
	begin := s.require("begin", "")
	require.NoError(t, s.conn.Close())
	for i := range 4 {
		w.set(t, fmt.Sprint(i), strings.Repeat("x", 4<<10))
	}
	files, err := w.catalog.LogFiles()
	require.NoError(t, err)
	for _, f := range files[:len(files)-1] {
		require.NoError(t, os.Remove(f.Path))
	}
	r := w.dial(t).do(with(acceptJSON, watchOf("ts="+begin.TS)))
	require.Equal(t, "410 Gone", r.status)
	require.Contains(t, r.body, "read the records anew, and watch from now on")
	s = w.watch(t, watchOf("ts=0"))
	s.require("begin", "")
	s.require("set", "3")
}

// After the order of the databases was changed, nobody is shown what was another database's.
func TestWatchAfterAChangeOfNumbers(t *testing.T) {
	logs, files := t.TempDir(), t.TempDir()
	var ts string
	for _, names := range [][]string{{"words.kct", "users.kct"}, {"users.kct", "words.kct"}} {
		t.Run(names[0], func(t *testing.T) {
			w := newWatchedIn(t, logs, httpapi.Options{}, filepath.Join(files, names[0]), filepath.Join(files, names[1]))
			if names[0] == "words.kct" {
				s := w.watch(t, watchOf("DB=words.kct"))
				ts = s.require("begin", "").TS
				w.set(t, "old", "1")
				s.require("set", "old")
				w.stop()
				return
			}
			r := w.dial(t).do(with(acceptJSON, watchOf("DB=users.kct&ts="+ts)))
			require.Equal(t, "410 Gone", r.status)
			require.Regexp(t, `up to ts=\d+ the number of .*users.kct in the update log was another database's`, r.body)
			all, last := w.watch(t, watchOf("DB=users.kct&ts=0")), w.watch(t, watchOf("DB=users.kct"))
			all.require("begin", "")
			last.require("begin", "")
			w.set(t, "new", "2")
			all.require("set", "new")
			ts = last.require("set", "new").TS
			w.set(t, "newer", "3")
			w.watch(t, watchOf("DB=users.kct&ts="+ts)).requireAfterBegin("set", "newer")
			w.stop()
		})
	}
}

// requireAfterBegin checks the first event behind the beginning.
func (s *stream) requireAfterBegin(name, key string) {
	s.t.Helper()
	s.require("begin", "")
	s.require(name, key)
}

// A client that does not read is told that it is too slow when it reads again, and nobody waits for
// it meanwhile.
func TestWatchSlowReader(t *testing.T) {
	w := newWatched(t, httpapi.Options{MaxBehind: 4})
	s := w.watch(t, watchOf(""))
	begin := s.require("begin", "")
	value := strings.Repeat("x", 1<<20) // all of them are more than sockets hold
	for i := range 20 {
		w.set(t, fmt.Sprint(i), value)
	}
	seen := 0
	e := s.next()
	for ; e.Event == "set"; e = s.next() {
		require.Equal(t, fmt.Sprint(seen), e.Key)
		seen++
	}
	require.Equal(t, "slow", e.Reason, "%+v", e)
	require.Less(t, seen, 20)
	s = w.watch(t, watchOf("ts="+e.TS))
	require.Greater(t, s.require("begin", "").TS, begin.TS)
	for ; seen < 20; seen++ {
		s.require("set", fmt.Sprint(seen))
	}
}

// Who takes a large event in drops does not keep it in memory for hours.
func TestWatchThatDrips(t *testing.T) {
	w := newWatched(t, httpapi.Options{})
	w.limits = new(netio.Limits)
	w.limits.SetBudget(128 << 20)
	w.limits.SetRequest(50 * time.Millisecond)
	s := w.watch(t, watchOf(""))
	s.require("begin", "")
	w.set(t, "a", strings.Repeat("x", 32<<20))
	piece := make([]byte, 512)
	tick := time.NewTicker(20 * time.Millisecond) // 25 KB in a second: 32 MiB would take 20 minutes
	defer tick.Stop()
	var err error
	for began := time.Now(); err == nil; <-tick.C {
		_, err = s.in.Read(piece)
		require.Less(t, time.Since(began), 20*time.Second)
	}
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, s.conn.Close())
	w.conns.Wait()
	require.Zero(t, w.limits.Held())
}

// A change that is not confirmed by the followers is not told before it is.
func TestWatchConfirmed(t *testing.T) {
	w := newWatched(t, httpapi.Options{})
	s := w.watch(t, watchOf("heartbeat=0.1"))
	s.require("begin", "")
	w.quorum.SetRequired(1)
	w.set(t, "a", "1") // nil: waits for this server's log alone
	beat := s.require("heartbeat", "")
	w.quorum.SetRequired(0)
	e := s.next()
	for ; e.Event == "heartbeat"; e = s.next() { // one may have been under way
		beat = e
	}
	require.Equal(t, "set", e.Event, "%+v", e)
	require.Equal(t, "a", e.Key)
	require.Greater(t, e.TS, beat.TS)
}

func TestWatchRights(t *testing.T) {
	w := newWatched(t, httpapi.Options{})
	path := filepath.Join(t.TempDir(), "access")
	names := []string{"anna", "bert"}
	writeAccess(t, path, names, "allow anna read prefix=a", "allow bert read")
	guard, err := access.Open(access.Options{Path: path})
	require.NoError(t, err)
	t.Cleanup(guard.Close)
	w.access = guard
	for params, status := range map[string]string{"": "403", "prefix=": "403", "prefix=b": "403"} {
		require.Equal(t, status, w.dial(t).do(as("anna", watchOf(params))).status[:3], params)
	}
	require.Equal(t, "401", w.dial(t).do(watchOf("prefix=a")).status[:3])
	s, b := w.watch(t, as("anna", watchOf("prefix=ab"))), w.watch(t, as("bert", watchOf("")))
	s.require("begin", "")
	b.require("begin", "")
	w.set(t, "ab", "1")
	s.require("set", "ab")
	b.require("set", "ab")

	// The rules change: whoever has lost the right is told nothing more, and whoever has kept it
	// goes on.
	writeAccess(t, path, names, "allow anna read prefix=x", "allow bert read")
	guard.Reload()
	w.set(t, "ab", "2")
	denied := s.requireOver("denied")
	require.Contains(t, denied.Error, "access denied")
	require.Equal(t, "2", b.require("set", "ab").Value)

	// What was not told any more does not count as told.
	writeAccess(t, path, names, "allow anna read")
	guard.Reload()
	s = w.watch(t, as("anna", watchOf("ts="+denied.TS)))
	s.require("begin", "")
	require.Equal(t, "2", s.require("set", "ab").Value)
}

// A client that goes away frees its place at the next heartbeat.
func TestWatchClientGoes(t *testing.T) {
	w := newWatched(t, httpapi.Options{})
	s := w.watch(t, watchOf("heartbeat=0.1"))
	s.require("begin", "")
	require.NoError(t, s.conn.Close())
	ended := make(chan struct{})
	go func() { w.conns.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		require.Fail(t, "the connection is still served")
	}
}
