package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever starts a daemon that nobody will hear of is told so, since the daemon itself cannot.
func TestADaemonThatNobodyHearsOfIsTold(t *testing.T) {
	c := DefaultConfig()
	require.Equal(t, []string{
		"-dmn without -log FILE: what the daemon has to say is lost, also why it does not start",
		"-dmn without -pid FILE: nothing keeps the process ID, which a script needs to stop the daemon",
	}, c.daemonNotes())
	c.LogPath, c.PIDPath = "/log", "/pid"
	require.Empty(t, c.daemonNotes())
}
