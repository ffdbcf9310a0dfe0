package httpapi_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/record"
	"gotycoon/httpapi"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/ulog"
)

// newSmallServer returns a server whose requests may hold 4 MiB together, and each request 3 MiB.
func newSmallServer(t *testing.T) (*server, *netio.Limits) {
	s := newServer(t)
	s.limits = new(netio.Limits)
	s.limits.SetBudget(4 << 20)
	return s, s.limits
}

// A request for which there is no memory is refused and its connection ends; other requests are
// served, and all memory is given back.
func TestWhatThereIsNoMemoryForIsRefused(t *testing.T) {
	const tsv = "Content-Type: text/tab-separated-values\r\n"
	call := func(name, headers, body string) string {
		return fmt.Sprintf("POST /rpc/%s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s", name, headers, len(body), body)
	}
	for name, c := range map[string]struct {
		request, status string
	}{
		"a body whose length is declared":  {"PUT /a HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n", "413 Request Entity Too Large"},
		"a body in chunks":                 {"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(2_000_000), "413 Request Entity Too Large"},
		"a chunk that is declared":         {"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n", "413 Request Entity Too Large"},
		"a chunk size with leading zeros":  {"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("0", 100) + "1000000000000000\r\n", "413 Request Entity Too Large"},
		"rows of two bytes":                {call("void", tsv, strings.Repeat("\t\n", 100_000)), "413 Request Entity Too Large"},
		"fields of a form":                 {call("void", "Content-Type: application/x-www-form-urlencoded\r\n", strings.Repeat("a&", 100_000)), "413 Request Entity Too Large"},
		"columns that are repeated":        {call("echo", tsv, numbered("a", 50_000)), "413 Request Entity Too Large"},
		"an atomic bulk of tiny records":   {call("set_bulk", tsv, "atomic\t\n"+numbered("_a", 10_000)), "413 Request Entity Too Large"},
		"keys that are found":              {call("match_prefix", tsv, "prefix\t\n"), "413 Request Entity Too Large"},
		"values that are found":            {call("get_bulk", tsv, numbered("_v", 100)), "413 Request Entity Too Large"},
		"a large value by its path":        {"GET /huge HTTP/1.1\r\n\r\n", "413 Request Entity Too Large"},
		"a large value by a procedure":     {call("get", tsv, "key\thuge\n"), "413 Request Entity Too Large"},
		"a large value of a bulk":          {call("get_bulk", tsv, "_huge\t\n"), "413 Request Entity Too Large"},
		"a large value that is removed":    {call("seize", tsv, "key\thuge\n"), "413 Request Entity Too Large"},
		"a large value that grows":         {call("append", tsv, "key\thuge\nvalue\tx\n"), "413 Request Entity Too Large"},
		"the size of a large value":        {"HEAD /huge HTTP/1.1\r\n\r\n", "200 OK"},
		"the removal of a large value":     {"DELETE /huge HTTP/1.1\r\n\r\n", "204 No Content"},
		"a procedure that needs a little":  {call("void", tsv, strings.Repeat("\t\n", 1000)), "200 OK"},
		"keys of which some are wanted":    {call("match_prefix", tsv, "prefix\t\nmax\t100\n"), "200 OK"},
		"a bulk that is stored in pieces":  {call("set_bulk", tsv, numbered("_a", 10_000)), "200 OK"},
		"a value that is sent in pieces":   {call("get", tsv, "key\tlarge\n"), "200 OK"},
		"a header that has an end at last": {"GET /k0 HTTP/1.1\r\n" + strings.Repeat("X: "+strings.Repeat("x", 8000)+"\r\n", 100) + "\r\n", "200 OK"},
	} {
		t.Run(name, func(t *testing.T) {
			s, limits := newSmallServer(t)
			keys := 1
			if strings.HasPrefix(name, "keys") {
				keys = 40_000
			}
			fill(t, s, keys)
			conn := s.dial(t)
			got := conn.do(c.request)
			require.Equal(t, c.status, got.status)
			if c.status >= "400" {
				require.Equal(t, "close", got.header("Connection"))
				_, err := conn.in.ReadByte()
				require.Error(t, err)
				require.Equal(t, name != "a chunk size with leading zeros", limits.Denied() > 0)
			}
			require.NoError(t, conn.conn.Close())
			s.conns.Wait()
			require.Zero(t, limits.Held())
		})
	}
}

// chunks is a body of n bytes in chunks of a thousand.
func chunks(n int) string {
	return strings.Repeat("3e8\r\n"+strings.Repeat("x", 1000)+"\r\n", n/1000) + "0\r\n\r\n"
}

// numbered is n rows without values.
func numbered(name string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d\t\n", name, i)
	}
	return b.String()
}

// fill stores so many keys, a hundred larger values, and a value that is too large to be
// sent at once.
func fill(t *testing.T, s *server, keys int) {
	t.Helper()
	d := s.catalog.DB(0)
	for i := range keys {
		require.NoError(t, d.Set(nil, fmt.Appendf(nil, "k%d", i), []byte("x"), record.Never))
	}
	for i := range 100 {
		require.NoError(t, d.Set(nil, fmt.Appendf(nil, "v%d", i), make([]byte, 50_000), record.Never))
	}
	require.NoError(t, d.Set(nil, []byte("large"), make([]byte, 700_000), record.Never))
	require.NoError(t, d.Set(nil, []byte("huge"), make([]byte, 3_200_000), record.Never))
}

// The reply of a request that has removed a record has the record, even if there is no memory for
// the reply.
func TestWhatIsSeizedIsTold(t *testing.T) {
	for name, path := range map[string]string{"seize": "seize?key=huge", "cur_seize": "cur_seize?CUR=1"} {
		t.Run(name, func(t *testing.T) {
			s, limits := newSmallServer(t)
			require.NoError(t, s.catalog.DB(0).Set(nil, []byte("huge"), make([]byte, 2_000_000), record.Never))
			conn := s.dial(t)
			require.Equal(t, "200 OK", conn.do("GET /rpc/cur_jump?CUR=1 HTTP/1.1\r\n\r\n").status)
			got := conn.do("GET /rpc/" + path + " HTTP/1.1\r\n\r\n")
			require.Equal(t, "200 OK", got.status)
			require.Greater(t, len(got.body), 2_000_000)
			require.Equal(t, "200 OK", conn.do("GET /rpc/cur_delete?CUR=1 HTTP/1.1\r\n\r\n").status)
			require.Equal(t, "413 Request Entity Too Large", conn.do("PUT /a HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n").status)
			require.NoError(t, conn.conn.Close())
			s.conns.Wait()
			require.Zero(t, limits.Held())
		})
	}
}

func TestCursorsCount(t *testing.T) {
	s, limits := newSmallServer(t)
	fill(t, s, 1)
	conn := s.dial(t)
	for i := range 10_000 {
		require.Equal(t, "200 OK", conn.do(fmt.Sprintf("GET /rpc/cur_jump?CUR=%d HTTP/1.1\r\n\r\n", i)).status)
	}
	require.Greater(t, limits.Held(), int64(10_000*256))
	got := conn.do("GET /rpc/cur_jump?CUR=10000 HTTP/1.1\r\n\r\n")
	require.Equal(t, "503 Service Unavailable", got.status)
	require.Contains(t, got.body, "too many cursors")
	held := limits.Held()
	require.Equal(t, "200 OK", conn.do("GET /rpc/cur_delete?CUR=0 HTTP/1.1\r\n\r\n").status)
	require.Less(t, limits.Held(), held)
	require.Equal(t, "200 OK", conn.do("GET /rpc/cur_jump?CUR=10000 HTTP/1.1\r\n\r\n").status)

	other := s.dial(t)
	status := "200 OK"
	for i := 0; status == "200 OK"; i++ {
		require.Less(t, i, 10_000)
		status = other.do(fmt.Sprintf("GET /rpc/cur_jump?CUR=%d HTTP/1.1\r\n\r\n", i)).status
	}
	require.Equal(t, "503 Service Unavailable", status, "all connections together have no memory for more")
	require.NoError(t, conn.conn.Close())
	require.NoError(t, other.conn.Close())
	s.conns.Wait()
	require.Zero(t, limits.Held())
}

// A call that waits for long keeps its request in memory, so it refuses a large one at once.
func TestCallsThatWaitRefuseLargeRequests(t *testing.T) {
	m := httpapi.NewMeters()
	m.Meter = metrics.New(metrics.Options{Still: true})
	w := newWatched(t, httpapi.Options{Meters: m, Replicas: noReplicas{}})
	w.limits = new(netio.Limits)
	w.limits.SetBudget(16 << 20)
	for _, name := range []string{"watch", "wait_replicas", "monitor", "hotkeys"} {
		for what, request := range map[string]string{
			"body": rpc(name, "timeout", "5", "seconds", "5", "junk", strings.Repeat("x", 300_000)),
			"rows": rpc(name, slices.Repeat([]string{"a", ""}, 2_000)...),
			"head": with(strings.Repeat("X: "+strings.Repeat("x", 8000)+"\r\n", 40), rpc(name)),
		} {
			r := w.dial(t).do(request)
			require.Equal(t, "400 Bad Request", r.status, "%s: %s", name, what)
			require.Contains(t, r.body, "the request has more than 64 KiB, which would stay in memory while this call waits")
		}
	}
	s := w.watch(t, rpc("watch", "prefix", strings.Repeat("x", 10_000)))
	s.require("begin", "")
	require.LessOrEqual(t, w.limits.Held(), int64(64<<10))
}

// noReplicas are no followers.
type noReplicas struct{}

func (noReplicas) Rows(time.Time) (names, values []string)                    { return nil, nil }
func (noReplicas) Required() int                                              { return 1 }
func (noReplicas) Await(ulog.Stamp, int, time.Duration) (have int, err error) { return 0, nil }

// Large requests that wait for a signal hold a quarter of the budget together, so that the large
// requests of other clients are served.
func TestWaitersLeaveMemoryToOthers(t *testing.T) {
	s := newServer(t)
	s.limits = new(netio.Limits)
	s.limits.SetBudget(16 << 20)
	large := rpc("set", "WAIT", "go", "WAITTIME", "20", "key", "a", "value", strings.Repeat("x", 900_000))
	var waiting []*client
	for n := 1; n <= 2; n++ {
		waiting = append(waiting, s.dial(t).send(large))
		eventually(t, s.signals, "go", n)
	}
	r := s.dial(t).do(large)
	require.Equal(t, "503 Service Unavailable", r.status)
	require.Contains(t, r.body, "no memory for a request of this size now")
	waiting = append(waiting, s.dial(t).send(rpc("void", "WAIT", "go", "WAITTIME", "20")))
	eventually(t, s.signals, "go", 3)
	require.Equal(t, "201 Created", s.dial(t).do("PUT /b HTTP/1.1\r\nContent-Length: 4000000\r\n\r\n"+strings.Repeat("y", 4_000_000)).status)

	s.signals.Signal("go", true)
	for _, c := range waiting {
		require.Equal(t, "200 OK", c.receive(false).status)
		require.NoError(t, c.conn.Close())
	}
	again := s.dial(t).send(large)
	eventually(t, s.signals, "go", 1)
	s.signals.Signal("go", true)
	require.Equal(t, "200 OK", again.receive(false).status, "the places are free again")
}

// Requests of watches hold a quarter of the budget together, however small each of them is.
func TestWatchesLeaveMemoryToOthers(t *testing.T) {
	w := newWatched(t, httpapi.Options{})
	w.limits = new(netio.Limits)
	w.limits.SetBudget(1 << 20)
	request := rpc("watch", "junk", strings.Repeat("x", 60_000))
	for range 5 { // of 48 KiB that count
		w.watch(t, request).require("begin", "")
	}
	r := w.dial(t).do(request)
	require.Equal(t, "503 Service Unavailable", r.status)
	require.Contains(t, r.body, "no memory for a request of this size now")
	require.EqualValues(t, 5, w.counts.Watches.Load())
	w.watch(t, rpc("watch")).require("begin", "")
}

// A procedure's large value is in memory twice only: in the connection's buffer and in the store.
func TestALargeValueTakesTwiceItsSize(t *testing.T) {
	const size = 32 << 20
	value := strings.Repeat("v", size)
	for _, name := range []string{"set", "add", "replace"} {
		s, _ := newSmallServer(t)
		s.limits.SetBudget(1 << 30)
		body := "key\ta\nvalue\t" + value + "\nxt\t1000\n"
		request := fmt.Sprintf("POST /rpc/%s HTTP/1.1\r\nContent-Type: text/tab-separated-values\r\nContent-Length: %d\r\n\r\n%s", name, len(body), body)
		if name == "replace" {
			require.NoError(t, s.catalog.DB(0).Set(nil, []byte("a"), []byte("x"), record.Never))
		}
		conn := s.dial(t)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.Equal(t, "200 OK", conn.do(request).status)
		runtime.ReadMemStats(&after)
		if !raceEnabled { // under it the record is in Go's heap, too
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(5*size/2), "%s: the client copies it once as well", name)
		}
		got, xt, err := s.catalog.DB(0).Get(nil, nil, []byte("a"))
		require.NoError(t, err)
		require.True(t, string(got) == value, name)
		require.Equal(t, epoch.Unix()+1000, xt)
		require.NoError(t, conn.conn.Close())
		s.conns.Wait()
		require.Zero(t, s.limits.Held())
	}
}
