package console_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/db/engine/pg"
	"gotycoon/db/engine/pg/pgtest"
	"gotycoon/internal/needs"
	"gotycoon/internal/pgserver"
	"gotycoon/server"
)

// startOnEngine runs a server whose databases are in a PostgreSQL.
func startOnEngine(t *testing.T) (*running, *pgserver.Server) {
	t.Helper()
	p := pgtest.Own(t)
	url := strings.Replace(pgtest.Database(t, p), "postgres@", "postgres:secret@", 1)
	_, err := pg.Init(t.Context(), url, pg.Setup{SID: 3, Log: true, Databases: []string{"users", "sessions"}})
	require.NoError(t, err)
	return start(t, func(c *server.Config) {
		c.Databases, c.ServerID, c.UpdateLog = nil, -1, ""
		c.Snapshots.Dir, c.Services = "", server.ServicesConfig{}
		c.Plugins.Database = url
		c.Engine.Timeout = 5 * time.Second
	}), p
}

// metricsOf returns what a scrape gets.
func metricsOf(t *testing.T, s *running) string {
	t.Helper()
	r, err := http.Get("http://" + s.console + "/metrics")
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(text)
}

// TestEngine looks at an engine: in figures, in the report and in a browser; then the engine goes
// away, and comes back.
func TestEngine(t *testing.T) {
	needs.Chromium(t)
	s, p := startOnEngine(t)
	c := client.New(s.data, client.Options{})
	defer c.Close()
	set := func() error { return c.DB("users").Set(t.Context(), "japan", []byte("tokyo"), client.Never) }
	require.NoError(t, set())
	text := metricsOf(t, s)
	for _, line := range []string{
		"gotycoon_engine_up 1", "gotycoon_engine_group_operations_sum 1", "gotycoon_engine_write_seconds_count 1", "gotycoon_engine_queue 0",
		"gotycoon_engine_queue_limit 65536", `gotycoon_engine_settled_total{outcome="made"} 0`, "gotycoon_engine_log_bytes ", "gotycoon_engine_log_keep_seconds 3600", "gotycoon_engine_log_oldest_seconds ",
		"gotycoon_engine_dead_tuples ", "gotycoon_engine_oldest_transaction_seconds ", `gotycoon_alarm{alarm="engine"} 0`,
	} {
		require.Contains(t, text, "\n"+line)
	}
	require.NotContains(t, text, "gotycoon_engine_replica_lag_seconds ")
	b := openBrowser(t, s.console)
	b.prefers("light")
	b.section("overview", "Overview")
	b.press("nav", "Engine e")
	b.sees("h1", "Engine")
	b.sees("main", "no synchronous standby")
	b.sees("main", "answers")
	require.NoError(t, set())
	b.until(`document.querySelector("main").innerText.includes("1.0")`)
	require.False(t, eval[bool](b, `document.body.innerText.includes("secret")`))
	b.unclipped("engine")
	b.shot("engine-light")
	b.prefers("dark")
	b.shot("engine-dark")
	b.size(360, 740, 2)
	b.unclipped("engine on a phone")
	b.shot("engine-phone")
	b.size(1360, 900, 1)

	require.NoError(t, p.Crash())
	require.Error(t, set())
	require.Eventually(t, func() bool { return strings.Contains(metricsOf(t, s), "\ngotycoon_engine_up 0") }, patience, 20*time.Millisecond)
	require.Contains(t, metricsOf(t, s), `gotycoon_alarm{alarm="engine"} 1`)
	require.NotContains(t, metricsOf(t, s), "gotycoon_engine_log_bytes ")
	b.sees("main", "it does not answer")
	b.sees("#banner", "connection refused: look whether PostgreSQL runs there")
	b.shot("engine-away")
	require.NoError(t, p.Start())
	require.Eventually(t, func() bool { return set() == nil }, patience, 20*time.Millisecond)
	b.sees("main", "no synchronous standby")
}
