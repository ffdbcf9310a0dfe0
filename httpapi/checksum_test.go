package httpapi_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/httpapi"
)

func TestChecksum(t *testing.T) {
	c := newServer(t, ":", "%").dial(t)
	for i := range 2 {
		for j := range 10 {
			c.ok("set", "DB", fmt.Sprint(i), "key", fmt.Sprintf("k%d", j), "value", "v")
		}
	}
	ts := regexp.MustCompile(`(?m)^ts\t\d{19}$`)
	ask := func(rows ...string) string {
		out := c.ok("checksum", rows...)
		require.Regexp(t, ts, out)
		return ts.ReplaceAllString(out, "ts")
	}
	require.Regexp(t, `^_\t10:[0-9a-f]{16}:\nts\n$`, ask())
	require.Equal(t, ask(), ask("DB", "1"))
	require.Equal(t, ask("parts", "5"), ask("DB", "1", "parts", "5", "by", "hash"))
	require.Equal(t, 5+1, strings.Count(ask("parts", "5"), "\n"))
	require.Equal(t, ask("by", "key", "_k1", "k5", "_k7", ""), ask("DB", "1", "by", "key", "_k1", "k5", "_k7", ""))
	require.Regexp(t, `^_k1\t4:[0-9a-f]{16}:k5\n_k7\t3:[0-9a-f]{16}:\nts\n$`, ask("by", "key", "_k1", "k5", "_k7", ""))
	require.Regexp(t, `^_k3\t[0-9a-f]{16}\n_k4\t[0-9a-f]{16}\nts\n$`, ask("by", "key", "from", "k3", "to", "k5", "keys", "2"))
	require.Contains(t, ask("by", "key", "from", "k3", "to", "k5", "keys", "1"), "\nmore\t1\n")
	require.Greater(t, strings.Count(ask("DB", "1", "by", "key", "parts", "5"), "\n"), 5)

	for want, rows := range map[string][]string{
		"501": {"by", "key", "parts", "2"},
		"400": {"by", "value"},
	} {
		status, _ := c.call("checksum", rows...)
		require.Contains(t, status, want)
	}
	for _, rows := range [][]string{{"from", "b", "to", "a"}, {"_a", "", "_b", ""}, {"_a", "c", "_b", "d"}, {"parts", "100000", "_a", "b", "_c", "d"}, {"DB", "7"}} {
		status, _ := c.call("checksum", rows...)
		require.Contains(t, status, "400", rows)
	}
}

func TestUlogReach(t *testing.T) {
	dir := t.TempDir()
	c := newServerWith(t, db.Options{LogDir: dir, SID: 1}, httpapi.Options{}).dial(t)
	require.Regexp(t, `^gap\t0\nid\t[0-9a-f]{32}\n$`, c.ok("ulog_reach", "ts", "1"))
	status, _ := c.call("ulog_reach")
	require.Contains(t, status, "400")
	status, _ = newServer(t).dial(t).call("ulog_reach", "ts", "1")
	require.Contains(t, status, "400")
}
