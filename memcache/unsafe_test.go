package memcache

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
)

// TestNoReplyTellsWhatIsNotSafe asks for a record whose update is being synced (-oas). No reply may
// come before the sync has ended, and none at all if it fails.
func TestNoReplyTellsWhatIsNotSafe(t *testing.T) {
	for plex, requests := range map[string][]string{
		"opts=fm": {"get order\r\n", "gets order\r\n", "add order 0 0 1\r\nx\r\n", "incr order 1\r\n", "cas order 0 0 1 1\r\nx\r\n", "mg order v\r\n"},
		"opts=q":  {"get order\r\n"},
	} {
		fs := faultfs.New(vfs.OS{})
		catalog, err := db.Open([]string{"%"}, db.Options{LogDir: t.TempDir(), SyncEach: true, FS: fs})
		require.NoError(t, err)
		service, err := New(Options{Config: ParseConfig(plex), DB: catalog.DB(0), Started: time.Now()})
		require.NoError(t, err)
		s := &started{Server: service, db: catalog.DB(0), catalog: catalog}
		s.open(t)
		syncing, goOn := make(chan struct{}, 100), make(chan struct{})
		fs.OnSync(func() {
			syncing <- struct{}{}
			<-goOn
		})
		fs.FailSync(1, errors.New("input/output error"))
		writer := s.dial(t)
		writer.send("set order 0 0 1\r\n7\r\n")
		<-syncing
		clients := []*client{writer}
		for _, request := range requests {
			c := s.dial(t)
			c.send("%s", request)
			clients = append(clients, c)
		}
		for _, c := range clients {
			require.NoError(t, c.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
			_, err := c.r.ReadByte()
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
		}
		close(goOn)
		for _, c := range clients {
			c.ended()
		}
		require.NoError(t, service.Close())
		require.Error(t, catalog.Close(), "the log has failed")
	}
}
