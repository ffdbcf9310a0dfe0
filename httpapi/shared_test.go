package httpapi_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/engine/mem"
	"gotycoon/httpapi"
)

// On a server whose databases are in an engine, whatever needs a log or followers of the server's
// own is refused with what to do instead. Nothing is stored by a call that asks for followers.
func TestWhatAnEngineHasNoPlaceFor(t *testing.T) {
	e := mem.New(mem.Options{}).Server("a")
	t.Cleanup(func() { _ = e.Close() })
	s := newServerWith(t, db.Options{Shared: e}, httpapi.Options{Shared: true}, "one")
	c := s.dial(t)
	for call, want := range map[string]struct{ status, begins, has string }{
		"watch":                          {"501", "the server keeps no update log to watch", "SIGNAL"},
		"replicas":                       {"400", "no update log allows no replication", "ktutilmgr engine status"},
		"wait_replicas":                  {"400", "no update log allows no replication", "ktutilmgr engine status"},
		"ulog_list":                      {"400", "no update log allows no replication", "ktremotemgr backup"},
		"ulog_remove":                    {"400", "no update log allows no replication", "ktremotemgr backup"},
		"ulog_reach ts 1":                {"400", "no update log allows no replication", "ktremotemgr backup"},
		"ulog_hold name x":               {"400", "no update log allows no replication", "ktremotemgr backup"},
		"ulog_release name x":            {"400", "no update log allows no replication", "ktremotemgr backup"},
		"tune_replication":               {"501", "the RTS file is not set", "ktutilmgr engine load"},
		"tune_replication readonly true": {"501", "the RTS file is not set", "ktutilmgr engine load"},
		"cluster_status":                 {"501", "the server is in no cluster", "/readyz"},
		"cluster_change do require":      {"501", "the server is in no cluster", "/readyz"},
		"set key k value v REPLICAS 1":   {"501", "not implemented: REPLICAS", "leave the number"},
		"get key k POSITION 17":          {"400", "invalid parameters: the position 17", "position 0"},
	} {
		t.Run(call, func(t *testing.T) {
			words := strings.Fields(call)
			status, body := c.call(words[0], words[1:]...)
			require.Equal(t, want.status, status)
			text, found := strings.CutPrefix(body, "ERROR\t")
			require.True(t, found, body)
			text, err := url.PathUnescape(text)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(text, want.begins), text)
			require.Contains(t, text, "in an engine that servers share")
			require.Contains(t, text, want.has)
		})
	}
	require.Contains(t, c.do("PUT /k HTTP/1.1\r\nX-Kt-Replicas: 1\r\nContent-Length: 1\r\n\r\nv").status, "501")
	require.Equal(t, "POSITION\t0\n", c.ok("set", "key", "a", "value", "b", "REPLICAS", "0", "POSITION", "?"))
	require.Equal(t, "value\tb\n", c.ok("get", "key", "a", "POSITION", "0"))
	n, err := s.catalog.DB(0).Count(nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}
