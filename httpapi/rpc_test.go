package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/httpapi"
)

func TestProceduresOnOneRecord(t *testing.T) {
	c := newServer(t).dial(t)
	require.Empty(t, c.ok("set", "key", "a", "value", "1"))
	require.Equal(t, "value\t1\n", c.ok("get", "key", "a"))
	require.Equal(t, "vsiz\t1\n", c.ok("check", "key", "a"))
	c.ok("append", "key", "a", "value", "2", "xt", "100")
	require.Equal(t, "value\t12\nxt\t1795227692\n", c.ok("get", "key", "a"))
	c.ok("replace", "key", "a", "value", "3")
	c.ok("cas", "key", "a", "oval", "3", "nval", "")
	require.Equal(t, "value\t\n", c.ok("get", "key", "a"))
	c.ok("cas", "key", "a", "oval", "")
	c.ok("cas", "key", "a")
	c.ok("add", "key", "a", "value", "4")
	require.Equal(t, "value\t4\n", c.ok("seize", "key", "a"))
	c.ok("set", "key", "", "value", "empty")
	c.ok("remove", "key", "")
}

func TestErrors(t *testing.T) {
	const noRecord = "ERROR\tDB: 7: no record: no record\n"
	for _, tc := range []struct {
		name      string
		procedure string
		rows      []string
		status    string
		body      string
	}{
		{"missing parameter", "set", []string{"key", "a"}, "400", "ERROR\tinvalid parameters\n"},
		{"unknown database before missing parameters", "set", []string{"DB", "x"}, "400", "ERROR\tno such database\n"},
		{"database number out of range", "get", []string{"DB", "1", "key", "a"}, "400", "ERROR\tno such database\n"},
		{"negative number is a name", "get", []string{"DB", "-1", "key", "a"}, "400", "ERROR\tno such database\n"},
		{"number of 33 bits wraps around", "get", []string{"DB", "4294967296", "key", "a"}, "450", noRecord},
		{"empty database is the first", "get", []string{"DB", "", "key", "a"}, "450", noRecord},
		{"name ends at NUL", "get", []string{"DB", ":\x00x", "key", "a"}, "450", noRecord},
		{"get", "get", []string{"key", "a"}, "450", noRecord},
		{"add", "add", []string{"key", "b", "value", "1"}, "450", "ERROR\tDB: 6: record duplication: record duplication\n"},
		{"cas", "cas", []string{"key", "b", "oval", "x"}, "450", "ERROR\tDB: 8: logical inconsistency: status conflict\n"},
		{"increment", "increment", []string{"key", "b", "num", "1"}, "450", "ERROR\tDB: 8: logical inconsistency: logical inconsistency\n"},
		{"regex", "match_regex", []string{"regex", "["}, "450", "ERROR\tDB: 8: logical inconsistency: compilation failed\n"},
		{"command", "synchronize", []string{"command", ".."}, "500", "ERROR\tDB: 8: logical inconsistency: postprocessing failed\n"},
		{"backward cursor", "cur_jump_back", []string{"CUR", "1"}, "501", "ERROR\tDB: 1: not implemented: not implemented\n"},
		{"no cursor", "cur_get", nil, "400", "ERROR\tno such cursor\n"},
		{"cursor that is no number", "cur_get", []string{"CUR", "x"}, "400", "ERROR\tno such cursor\n"},
		{"unknown procedure", "nosuch", nil, "501", "ERROR\tnot implemented: nosuch\n"},
		{"procedure names have a case", "Void", nil, "501", "ERROR\tnot implemented: Void\n"},
		{"signals of unknown procedures", "nosuch", []string{"SIGNAL", "x"}, "501", "ERROR\tnot implemented: nosuch\nSIGNALED\t0\n"},
		{"script", "play_script", nil, "501", "ERROR\tthe scripting extention is disabled\n"},
		{"replication", "tune_replication", nil, "501", "ERROR\tthe RTS file is not set\n"},
		{"no log to list", "ulog_list", nil, "400", "ERROR\tno update log allows no replication\n"},
		{"no log to remove", "ulog_remove", nil, "400", "ERROR\tno update log allows no replication\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newServer(t).dial(t)
			c.ok("set", "key", "b", "value", "1")
			status, body := c.call(tc.procedure, tc.rows...)
			require.Equal(t, tc.status, status)
			require.Equal(t, tc.body, body)
			c.requireOpen()
		})
	}
}

func TestReadOnly(t *testing.T) {
	path := t.TempDir() + "/a.kct"
	first, err := db.Open([]string{path}, db.Options{})
	require.NoError(t, err)
	require.NoError(t, first.Close())
	s := newServerWith(t, db.Options{ReadOnly: true}, httpapi.Options{}, path)
	c := s.dial(t)
	for _, procedure := range []string{"set", "add", "replace", "append", "touch", "remove", "seize", "clear", "vacuum", "compact"} {
		status, body := c.call(procedure, "key", "a", "value", "1")
		require.Equal(t, "500", status, procedure)
		require.Equal(t, "ERROR\tDB: 4: no permission: permission denied\n", body, procedure)
	}
	r := c.do("PUT /a HTTP/1.1\r\n\r\n")
	require.Equal(t, "500 Internal Server Error", r.status)
	require.Equal(t, "DB: 4: no permission: permission denied", r.header("X-Kt-Error"))
}

func TestBulk(t *testing.T) {
	c := newServer(t).dial(t)
	require.Equal(t, "num\t3\n", c.ok("set_bulk", "_b", "2", "_a", "1", "_", "0", "c", "3"))
	require.Equal(t, "_\t0\n_a\t1\n_b\t2\nnum\t3\n", c.ok("get_bulk", "_b", "", "_a", "", "_", "", "_c", ""))
	require.Equal(t, "num\t1\n", c.ok("remove_bulk", "atomic", "", "_b", "", "_x", ""))
	require.Equal(t, "num\t0\n", c.ok("get_bulk"))
	require.Equal(t, "num\t1\n", c.ok("set_bulk", "_d", "1", "_d", "2"))
	require.Equal(t, "value\t2\n", c.ok("get", "key", "d"))
}

// A record's time changes, and its value does not; what a client asks for that is not there stays so.
func TestTouch(t *testing.T) {
	for _, expr := range []string{":", "%", t.TempDir() + "/a.kct"} {
		c := newServer(t, expr).dial(t)
		status, body := c.call("touch", "key", "a", "xt", "100")
		require.Equal(t, "450", status)
		require.Equal(t, "ERROR\tDB: 7: no record: no record\n", body)
		c.ok("set", "key", "a", "value", "1", "xt", "-4000000000")
		require.Empty(t, c.ok("touch", "key", "a", "xt", "-5000000000"))
		require.Equal(t, "value\t1\nxt\t5000000000\n", c.ok("get", "key", "a"))
		require.Empty(t, c.ok("touch", "key", "a"))
		require.Equal(t, "value\t1\n", c.ok("get", "key", "a"), "never")
		c.ok("touch", "key", "a", "xt", "-1")
		status, _ = c.call("get", "key", "a")
		require.Equal(t, "450", status)
		status, _ = c.call("touch", "key", "a")
		require.Equal(t, "450", status, "who has expired does not come back")
		status, _ = c.call("touch")
		require.Equal(t, "400", status)
	}
}

func TestIncrement(t *testing.T) {
	c := newServer(t).dial(t)
	require.Equal(t, "num\t5\n", c.ok("increment", "key", "n", "num", " +5x"))
	require.Equal(t, "num\t4\n", c.ok("increment", "key", "n", "num", "-1", "orig", "try"))
	require.Equal(t, "num\t9\n", c.ok("increment", "key", "n", "num", "9", "orig", "set"))
	require.Equal(t, "num\t12\n", c.ok("increment", "key", "m", "num", "2", "orig", "10"))
	require.Equal(t, "num\t1.500000\n", c.ok("increment_double", "key", "d", "num", "1.5"))
	require.Equal(t, "num\tinf\n", c.ok("increment_double", "key", "d", "num", "inf"))
	status, _ := c.call("increment_double", "key", "e", "num", "1", "orig", "nan")
	require.Equal(t, "450", status)
}

func TestMatch(t *testing.T) {
	c := newServer(t, "%").dial(t)
	c.ok("set_bulk", "_abc", "", "_abd", "", "_b", "")
	require.Equal(t, "_abc\t0\n_abd\t1\nnum\t2\n", c.ok("match_prefix", "prefix", "ab"))
	require.Equal(t, "_abc\t0\nnum\t1\n", c.ok("match_prefix", "prefix", "ab", "max", "1"))
	require.Equal(t, "num\t0\n", c.ok("match_prefix", "prefix", "ab", "max", "x"))
	require.Equal(t, "_abd\t0\n_b\t1\nnum\t2\n", c.ok("match_regex", "regex", "d|^b"))
	require.Equal(t, "_abc\t1\n_abd\t0\nnum\t2\n", c.ok("match_similar", "origin", "abd", "range", "-7"))
}

func TestCursors(t *testing.T) {
	s := newServer(t, "%", "%#x=1")
	c := s.dial(t)
	c.ok("set_bulk", "_a", "1", "_b", "2", "_c", "3")
	c.ok("cur_jump", "CUR", "7x", "key", "b")
	require.Equal(t, "key\tb\nvalue\t2\n", c.ok("cur_get", "CUR", "7", "step", ""))
	require.Equal(t, "key\tc\n", c.ok("cur_get_key", "CUR", "7", "DB", "1"), "a cursor keeps its database")
	c.ok("cur_set_value", "CUR", "7", "value", "4")
	require.Equal(t, "value\t4\n", c.ok("cur_get_value", "CUR", "7"))
	c.ok("cur_jump_back", "CUR", "7")
	c.ok("cur_step_back", "CUR", "7")
	c.ok("cur_remove", "CUR", "7")
	require.Equal(t, "key\ta\nvalue\t1\n", c.ok("cur_seize", "CUR", "7"))
	require.Equal(t, "num\t1\n", c.ok("get_bulk", "_a", "", "_b", "", "_c", "")[len("_c\t4\n"):])
	status, _ := s.dial(t).call("cur_get", "CUR", "7")
	require.Equal(t, "450", status, "a cursor belongs to its connection")
}

func TestCursorsOfUnknownNumbers(t *testing.T) {
	c := newServer(t).dial(t)
	status, body := c.call("cur_delete", "CUR", "1")
	require.Equal(t, "501", status)
	require.Equal(t, "ERROR\tnot implemented: cur_delete\n", body)
	require.Empty(t, c.ok("cur_delete", "CUR", "1", "SIGNAL", "x"), "made by the first call; sends no signal")
	c.ok("void", "CUR", "2")
	c.ok("cur_delete", "CUR", "2")
	status, _ = c.call("cur_delete")
	require.Equal(t, "501", status)
	status, body = c.call("cur_jump", "CUR", "3", "DB", "nosuch")
	require.Equal(t, "400", status)
	require.Equal(t, "ERROR\tno such cursor\n", body)
}

func TestEncodedOutput(t *testing.T) {
	c := newServer(t).dial(t)
	r := c.do(post("/rpc/echo", "text/tab-separated-values; colenc=B", "aw==\tYQli\n"))
	require.Equal(t, "k\ta%09b\n", r.body)
	require.Equal(t, "text/tab-separated-values; colenc=U", r.header("Content-Type"))
	r = c.do("GET /rpc/a%0ab HTTP/1.1\r\n\r\n")
	require.Equal(t, "ERROR\tnot%20implemented%3a%20a%0ab\n", r.body)
}
