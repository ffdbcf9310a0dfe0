package server

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A server that has waited for its engine in vain says why the engine was not ready, and not that
// its own patience has ended in the middle of an attempt.
func TestWhyAnEngineWasNotReady(t *testing.T) {
	c := &Config{Engine: EngineConfig{Wait: 300 * time.Millisecond}}
	c.Plugins.Database = "postgres://kt:geheim@127.0.0.1:1/kt"
	_, err := c.openEngine(logger{slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "refused")
	require.NotContains(t, err.Error(), "geheim")
}

// The password of an engine's URL is shown nowhere, however the URL is written.
func TestRedactedURL(t *testing.T) {
	for url, shown := range map[string]string{
		"postgres://kt@db1,db2/kt":                             "postgres://kt@db1,db2/kt",
		"postgres://kt:geheim@db1:5432,db2/kt?sslmode=require": "postgres://kt@db1:5432,db2/kt",
		"postgres://db/kt?user=kt&password=geheim":             "postgres://db/kt",
		"postgres://db/kt?password=gehe;im":                    "postgres://db/kt",
		"postgres://db/kt?password=geheim%zz":                  "postgres://db/kt",
		"postgres://kt:1/geheim@h/db":                          "postgres://…",
		"postgres://kt:1#geheim@h/db":                          "postgres://…",
		"postgres://kt:1?geheim@h/db":                          "postgres://…",
		"postgres://kt:ge%heim@h/db":                           "postgres://kt@h/db",
		"postgres://kt:ge@heim@h/db":                           "postgres://…",
	} {
		require.Equal(t, shown, RedactedURL(url), url)
		require.NotContains(t, RedactedURL(url), "geheim")
	}
}
