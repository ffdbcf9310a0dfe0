package quota

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
	"gotycoon/services/internal/servicetest"
)

// TestNoReplyTellsOfCallsThatAreNotSafe asks for a quota while another client's call is being
// synced (-oas). What must hold: what is left of the quota is told only when that call is safe,
// also by calls that change nothing.
func TestNoReplyTellsOfCallsThatAreNotSafe(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	catalog, err := db.Open([]string{filepath.Join(t.TempDir(), "q.kct")}, db.Options{LogDir: t.TempDir(), SyncEach: true, FS: fs})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, catalog.Close()) })
	addr := start(t, Options{Limit: 1000, DB: catalog.DB(0)})
	syncing, goOn := make(chan struct{}, 100), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release) // also when the test fails: closing waits for the log
	fs.OnSync(func() {
		syncing <- struct{}{}
		<-goOn
	})
	clients := []*servicetest.Client{servicetest.NewClient(t, addr)}
	call := func(c *servicetest.Client, path string) {
		_, err := fmt.Fprintf(c.Socket, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path)
		require.NoError(t, err)
	}
	call(clients[0], "/apply?amt=400&id=a")
	<-syncing
	for _, path := range []string{"/query", "/cancel?jnlsno=77", "/apply?amt=400&id=a", "/apply?amt=5&id=a"} {
		c := servicetest.NewClient(t, addr)
		call(c, path)
		clients = append(clients, c)
	}
	for _, c := range clients {
		require.NoError(t, c.Socket.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		_, err := c.Reader.ReadByte()
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, c.Socket.SetReadDeadline(time.Now().Add(20*time.Second)))
	}
	release()
	for _, c := range clients {
		line, err := c.Reader.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "200")
	}
}
