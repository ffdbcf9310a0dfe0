package remote_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStats(t *testing.T) {
	clear(t)
	succeed(t, "", "set", "k", "v")
	require.Regexp(t, `^db_0_count: 1\ndb_0_size: \d+\ndb_1_count: 0\ndb_1_size: \d+\n$`, succeed(t, "", "stats", "db_0", "db_1"))
	require.NotContains(t, succeed(t, "", "stats"), "serv_running_term")
	var all map[string]float64
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "", "stats", "-json")), &all))
	require.Positive(t, all["cnt_set"])
	require.Equal(t, 1.0, all["db_0_count"])

	require.Regexp(t, `^\d\d:\d\d:\d\d +value +per second\ncnt_set +\d+ +\+0\.0\n`,
		succeed(t, "", "stats", "-watch", "-all", "-iv", "0.1", "-n", "1", "cnt_set"))
	require.Regexp(t, `^\{"time":\d+\}\n$`, succeed(t, "", "stats", "-watch", "-json", "-iv", "0.1", "-n", "1", "cnt_set"))
	require.Contains(t, command(t, "", at("stats", "-watch", "-iv", "0.01")...).stderr, "-iv: must be at least 0.1")
}
