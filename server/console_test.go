package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/server"
)

// The console answers from the moment that the server is ready until it stops, also while the
// server takes snapshots.
func TestConsole(t *testing.T) {
	s, addr := startAdmin(t, func(c *server.Config) { everything(t, c) })
	ready(t, addr)
	eventually(t, func() bool { status, _ := fetch(t, addr, "/api/server"); return status == http.StatusOK })
	for _, path := range []string{"databases", "samples", "replication", "log", "snapshots", "locks", "counters", "sequences", "quotas", "slow", "facts"} {
		status, body := fetch(t, addr, "/api/"+path)
		require.Equal(t, http.StatusOK, status, "%s: %s", path, body)
		if path != "slow" {
			require.NotContains(t, body, `are off.`, path)
		}
	}
	status, body := fetch(t, addr, "/")
	require.Equal(t, http.StatusOK, status, "the root leads to the console")
	require.Contains(t, body, "<title>gotycoon</title>")
	for range 3 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/api/snapshots", http.NoBody)
		require.NoError(t, err)
		request.Header.Set("X-Gotycoon-Console", "1")
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Contains(t, []int{http.StatusOK, http.StatusConflict}, response.StatusCode)
	}
	require.Zero(t, s.stop(), "also while snapshots are taken")
}
