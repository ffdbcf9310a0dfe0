package httpapi_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/httpapi"
)

// No procedure and no verb reaches the services' database, by any number or name.
func TestNobodyReachesTheServicesDatabase(t *testing.T) {
	services := filepath.Join(t.TempDir(), "services.kct")
	s := newServerWith(t, db.Options{Services: services}, httpapi.Options{}, "%")
	d := s.catalog.Services()
	require.NoError(t, d.Set(nil, []byte("bound"), []byte("7"), record.Never))
	untouched := func(what string) {
		t.Helper()
		n, err := d.Count(nil)
		require.NoError(t, err)
		value, xt, err := d.Get(nil, nil, []byte("bound"))
		require.NoError(t, err, what)
		require.EqualValues(t, 1, n, what)
		require.Equal(t, "7", string(value), what)
		require.Equal(t, record.MaxXT, xt, what)
	}
	c := s.dial(t)
	for _, name := range []string{"65534", "+65534", " 65534", "065534", "65534.0", "4295032830", "-2", "services.kct", services, "65534x"} {
		for _, procedure := range []string{
			"add", "append", "cas", "check", "checksum", "clear", "get", "get_bulk", "increment", "increment_double", "match_prefix",
			"match_regex", "match_similar", "remove", "remove_bulk", "replace", "seize", "set", "set_bulk", "status", "synchronize", "vacuum", "compact",
		} {
			status, body := c.call(procedure, "DB", name, "key", "bound", "value", "0", "_bound", "0", "num", "1", "oval", "7", "nval", "8",
				"prefix", "b", "regex", "b", "origin", "b", "step", "0")
			require.Equal(t, "400", status, "%s DB=%s: %s", procedure, name, body)
			require.NotContains(t, body, "bound")
			untouched(procedure + " " + name)
		}
		for _, procedure := range []string{"cur_jump", "cur_get", "cur_set_value", "cur_remove", "cur_seize"} {
			status, _ := c.call(procedure, "DB", name, "CUR", "1", "value", "0")
			require.Equal(t, "400", status, procedure)
			untouched(procedure + " " + name)
		}
		c.call("clear", "DB", name, "WAIT", "x", "WAITTIME", "0.01")
		untouched("clear after a wait")
	}
	for _, path := range []string{"/65534/bound", "/services.kct/bound", "/%36%35%35%33%34/bound", "/065534//bound"} {
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
			r := c.do(method + " " + path + " HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
			require.Equal(t, "400", r.status[:3], "%s %s", method, path)
			untouched(method + " " + path)
		}
	}
	c.ok("clear") // of the database on the command line
	untouched("clear")
	c.ok("vacuum")
	c.ok("synchronize")
	require.NotContains(t, c.ok("report"), "services.kct")
}
