package server_test

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The service manager hears that the server is ready, that it works, and that it ends, in this
// order.
func TestServiceManager(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer manager.Close()
	require.NoError(t, manager.SetDeadline(time.Now().Add(patience)))
	t.Setenv("NOTIFY_SOCKET", path)
	// So few messages that none is refused because a slow test reads late: the queue of the socket
	// holds some ten.
	t.Setenv("WATCHDOG_USEC", "3000000")

	r := start(t, nil)
	require.Equal(t, "READY=1", next(t, manager, "WATCHDOG=1"))
	require.Equal(t, "WATCHDOG=1", next(t, manager, ""))
	require.Equal(t, 0, r.stop())
	require.Equal(t, "STOPPING=1", next(t, manager, "WATCHDOG=1"))
}

// next returns the next message to the service manager that is not skip.
func next(t *testing.T, manager *net.UnixConn, skip string) string {
	t.Helper()
	for {
		message := make([]byte, 100)
		n, err := manager.Read(message)
		require.NoError(t, err)
		if got := string(message[:n]); got != skip {
			return got
		}
	}
}
