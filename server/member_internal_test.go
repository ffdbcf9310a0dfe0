package server

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/internal/klog"
)

// A connection of a member for itself belongs to the cluster from then on: it outlives the data
// port through which it has come.
func TestConnectionsForTheClusterOutliveThePort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte("a secret of at least 32 characters"), 0o600))
	cfg := DefaultConfig()
	cfg.Port, cfg.Members.Secret, cfg.LogLevel = 0, path, klog.LevelSilent
	live := newLive(&cfg)
	log := newLogger(cfg.LogFormat, io.Discard, &live.level)
	r := &root{cfg: &cfg, live: live, log: log, signals: watchSignals(false, false), manager: manager{log}, started: time.Now()}
	defer r.signals.close()
	require.True(t, r.open())
	type came struct {
		name string
		conn net.Conn
	}
	arrived := make(chan came, 1)
	r.members.cluster = func(name string, c net.Conn) { arrived <- came{name, c} }
	r.members.ours, r.members.name = "shop", "shop/a:1978"
	require.NoError(t, r.data.start())

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	here, err := r.members.dial(ctx, r.data.Addr().String(), frame.MemberCluster, nil)
	require.NoError(t, err)
	defer here.Close()
	there := <-arrived
	defer there.conn.Close()
	require.Equal(t, "a:1978", there.name)
	r.data.stop()
	require.True(t, r.stack.unwind())

	require.NoError(t, here.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = io.WriteString(here, "still here")
	require.NoError(t, err)
	got := make([]byte, len("still here"))
	_, err = io.ReadFull(there.conn, got)
	require.NoError(t, err)
	require.Equal(t, "still here", string(got))
}
