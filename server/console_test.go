package server_test

import (
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/server"
)

// An address of the admin listener's own opens the metrics. The console shows other machines no
// databases where the data port is protected by default.
func TestAnAdminAddressDoesNotOpenTheDatabases(t *testing.T) {
	far := newFarAway(t)
	_, addr := startAdmin(t, func(c *server.Config) { c.Admin.Addr = "0.0.0.0:0" })
	_, text, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	ask := func(path string) string {
		return exchange(t, far.dial, port, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	}
	require.Contains(t, ask("/metrics"), "HTTP/1.1 200")
	for _, path := range []string{"/api/databases", "/api/databases/0/records", "/api/databases/0/backup", "/api/server"} {
		require.Contains(t, ask(path), "HTTP/1.1 403", path)
	}
}

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
