package server_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
	"gotycoon/server"
)

// withQuotas gives a server quotas.
func withQuotas(t *testing.T, c *server.Config, sid int) {
	t.Helper()
	c.ServerID, c.UpdateLog = sid, filepath.Join(t.TempDir(), "ulog")
	c.RTSPath = filepath.Join(t.TempDir(), "rts")
	c.Services.QuotaPort, c.Services.Limit, c.Services.Database = freeport.Take(t), 100, filepath.Join(t.TempDir(), "services.kct")
}

// A slave does not become the primary behind its master's back; a server that its master follows
// may, because that hears of it.
func TestThePrimaryIsNotReplacedUnheard(t *testing.T) {
	master := start(t, func(c *server.Config) { withQuotas(t, c, 1) })
	slave := start(t, func(c *server.Config) {
		withQuotas(t, c, 2)
		c.MasterHost, c.MasterPort = "127.0.0.1", master.port()
	})
	m, s := master.dial(), slave.dial()
	primary := func(c *client) string { return c.rows("/rpc/report")["serv_primary"] }
	eventually(t, func() bool {
		r := s.rows("/rpc/report")
		return r["serv_primary_sid"] == "1" && r["repl_lag_records"] == "0"
	})
	require.Equal(t, "true", primary(m))
	status, body := s.get("/rpc/tune_replication?primary=true")
	require.Equal(t, 500, status)
	require.Contains(t, body, "would%20not%20hear%20of%20it")
	require.Equal(t, "false", primary(s))

	m.get(fmt.Sprintf("/rpc/tune_replication?host=127.0.0.1&port=%d", slave.port())) // now they follow each other
	eventually(t, func() bool { status, _ := s.get("/rpc/tune_replication?primary=true"); return status == 200 })
	eventually(t, func() bool { return primary(s) == "true" && primary(m) == "false" })
}
