package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/server"
)

// TestNothingIsAcknowledgedOnceReadOnly makes a server read-only while clients write, as at the
// beginning of a planned takeover. What must hold: when the server has answered that it is
// read-only, all acknowledged updates are in the log files, and no further ones get into them.
func TestNothingIsAcknowledgedOnceReadOnly(t *testing.T) {
	dir := t.TempDir()
	logDir := filepath.Join(dir, "ulog")
	s := start(t, func(c *server.Config) {
		c.UpdateLog, c.ServerID, c.RTSPath = logDir, 1, filepath.Join(dir, "rts")
	})
	admin := s.dial()
	var clients sync.WaitGroup
	var acknowledged atomic.Int64
	for i := range 8 {
		c := s.dial()
		clients.Go(func() {
			for n := 0; ; n++ {
				if status, _ := c.get(fmt.Sprintf("/rpc/set?key=%d/%d&value=x", i, n)); status != 200 {
					return
				}
				acknowledged.Add(1)
			}
		})
	}
	eventually(t, func() bool { return acknowledged.Load() > 200 })
	status, body := admin.get("/rpc/tune_replication?readonly=true")
	require.Equal(t, 200, status, body)
	atReply := sizes(t, logDir)
	count := admin.rows("/rpc/status")["count"]
	clients.Wait()
	require.Equal(t, atReply, sizes(t, logDir), "the log has grown since the server said that it takes no more updates")
	require.Equal(t, fmt.Sprint(acknowledged.Load()), count)
	require.Equal(t, "true", admin.rows("/rpc/report")["repl_read_only"], "who comes later can see it")
	status, _ = admin.get("/rpc/tune_replication?readonly=false")
	require.Equal(t, 200, status)
	require.NotContains(t, admin.rows("/rpc/report"), "repl_read_only")
	require.Zero(t, s.stop())
}

// sizes returns the sizes of the files in a directory.
func sizes(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := map[string]int64{}
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		all[f.Name()] = info.Size()
	}
	return all
}
