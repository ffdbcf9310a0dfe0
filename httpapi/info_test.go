package httpapi_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/httpapi"
)

// table reads the rows of a body.
func table(body string) map[string]string {
	rows := make(map[string]string)
	for line := range strings.Lines(body) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		rows[name] = value
	}
	return rows
}

func TestReport(t *testing.T) {
	s := newServerWith(t, db.Options{}, httpapi.Options{
		Report: func(rows map[string]string) { rows["serv_proc_id"] = "1" },
	}, ":", "%")
	c := s.dial(t)
	c.ok("set", "DB", "1", "key", "a", "value", "1")
	rows := table(c.ok("report"))
	require.Equal(t, "1", rows["serv_proc_id"])
	require.Equal(t, "1", rows["cnt_set"])
	require.Equal(t, "1", rows["db_total_count"])
	require.Regexp(t, `^count=0 size=\d+ path=:$`, rows["db_0"])
	require.Regexp(t, `^count=1 size=\d+ path=%$`, rows["db_1"])
}

func TestStatus(t *testing.T) {
	c := newServer(t).dial(t)
	c.ok("set", "key", "a", "value", "1")
	rows := table(c.ok("status"))
	require.Equal(t, "1", rows["count"])
	require.Equal(t, ":", rows["path"])
}

func TestCounters(t *testing.T) {
	for _, tc := range []struct {
		name    string
		request string
		want    string // counters that are not 0
	}{
		{"set", rpc("set", "key", "a", "value", "1"), "set=1"},
		{"failed add", rpc("add", "key", "b", "value", "1"), "set=1 set_misses=1"},
		{"failed cas", rpc("cas", "key", "a", "oval", ""), "set=1 set_misses=1"},
		{"remove of nothing", rpc("remove", "key", "a"), "remove=1 remove_misses=1"},
		{"get of nothing", rpc("get", "key", "a"), "get=1 get_misses=1"},
		{"check", rpc("check", "key", "b"), "get=1"},
		{"seize of nothing", rpc("seize", "key", "a"), "remove=1 remove_misses=1 get=1 get_misses=1"},
		{"set_bulk", rpc("set_bulk", "_x", "", "_y", ""), "set=2"},
		{"get_bulk", rpc("get_bulk", "_x", "", "_b", ""), "get=2 get_misses=1"},
		{"remove_bulk", rpc("remove_bulk", "_x", "", "_b", ""), "remove=2 remove_misses=1"},
		{"cur_seize of nothing", rpc("cur_seize", "CUR", "1"), "get=1 get_misses=1"},
		{"cur_jump", rpc("cur_jump", "CUR", "1"), "misc=1"},
		{"status", rpc("status"), "misc=1"},
		{"wrong call", rpc("set"), ""},
		{"void", rpc("void"), ""},
		{"report", rpc("report"), ""},
		{"PUT", "PUT /a HTTP/1.1\r\n\r\n", "set=1"},
		{"GET of nothing", "GET /a HTTP/1.1\r\n\r\n", "get=1 get_misses=1"},
		{"HEAD", "HEAD /b HTTP/1.1\r\n\r\n", "get=1"},
		{"DELETE of nothing", "DELETE /a HTTP/1.1\r\n\r\n", "remove=1 remove_misses=1"},
		{"unknown database", "GET /x/a HTTP/1.1\r\n\r\n", ""},
		{"unknown method", "POST /a HTTP/1.1\r\n\r\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			c := s.dial(t)
			c.ok("set", "key", "b", "value", "1")
			s.counts.Set.Store(0)
			c.do(tc.request)
			require.Equal(t, tc.want, s.counters())
		})
	}
}

func (s *server) counters() string {
	var list []string
	add := func(name string, n int64) {
		if n != 0 {
			list = append(list, name+"="+itoa(int(n)))
		}
	}
	add("set", s.counts.Set.Load())
	add("set_misses", s.counts.SetMisses.Load())
	add("remove", s.counts.Remove.Load())
	add("remove_misses", s.counts.RemoveMisses.Load())
	add("get", s.counts.Get.Load())
	add("get_misses", s.counts.GetMisses.Load())
	add("script", s.counts.Script.Load())
	add("misc", s.counts.Misc.Load())
	return strings.Join(list, " ")
}

func TestLog(t *testing.T) {
	path := t.TempDir() + "/a.kct"
	first, err := db.Open([]string{path}, db.Options{})
	require.NoError(t, err)
	require.NoError(t, first.Close())
	s := newServerWith(t, db.Options{ReadOnly: true}, httpapi.Options{}, path)
	c := s.dial(t)
	c.do("GET /rpc/void?a=b HTTP/1.1\r\n\r\n")
	c.do("PUT /k HTTP/1.1\r\nConnection: close\r\n\r\n")
	c.requireEnd()
	s.conns.Wait()
	require.Equal(t, `level=INFO msg="(127.0.0.1:50000): GET /rpc/void?a=b HTTP/1.1: 200"
level=ERROR msg="database error: 4: no permission: permission denied"
level=INFO msg="(127.0.0.1:50000): PUT /k HTTP/1.1: 500"
`, s.log.String())
}

func TestHelp(t *testing.T) {
	c := newServer(t).dial(t)
	list := c.ok("help")
	require.Contains(t, list, "\nget\tget the value of a record\n")
	require.Len(t, strings.Split(strings.TrimSpace(list), "\n"), 57)
	require.Equal(t, "key\tthe key\nvalue\tthe value\n"+
		"xt\tseconds until the record expires; below 0: the absolute time, in seconds since 1970 (default never)\n",
		c.ok("help", "name", "set"))
	require.Empty(t, c.ok("help", "name", "void"))
	status, body := c.call("help", "name", "nosuch")
	require.Equal(t, "501", status)
	require.Equal(t, "ERROR\tnot implemented: nosuch\n", body)
}
