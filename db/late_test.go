package db

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/gate"
	"gotycoon/ulog"
)

// Updates share a commit only where nothing is known to speak against it.
func TestWhereUpdatesMayShareACommit(t *testing.T) {
	file := func() string { return filepath.Join(t.TempDir(), "a.kct") }
	require.False(t, mustOpen(t, Options{}, "%").DB(0).AllowsLate(), "no log")
	require.False(t, mustOpen(t, Options{LogDir: t.TempDir(), SyncEach: true}, file()).DB(0).AllowsLate(), "clients wait for the disk")

	c := mustOpen(t, Options{LogDir: t.TempDir()}, file())
	d := c.DB(0)
	require.True(t, d.AllowsLate())
	require.NoError(t, c.SetGuarded(true))
	require.False(t, d.AllowsLate())
	require.NoError(t, c.SetGuarded(false))
	for _, l := range []gate.Limits{{Disk: -1}, {Disk: 1 << 16}, {Disk: 1 << 30, Full: true}, {Disk: 1 << 30, Over: true}} {
		c.Gate().Set(l)
		require.False(t, d.AllowsLate(), "%+v", l)
	}
	c.Gate().Set(gate.Limits{Disk: 1 << 30})
	require.True(t, d.AllowsLate())
	c.Log().SetConfirmer(allServers{}, false)
	require.True(t, d.AllowsLate(), "only who asks waits for other servers")
	c.Log().SetConfirmer(allServers{}, true)
	require.False(t, d.AllowsLate())
}

// allServers is a Confirmer of a server without followers.
type allServers struct{}

func (allServers) Required() int                            { return 0 }
func (allServers) Confirmed(_, _ int) ulog.Stamp            { return ^ulog.Stamp(0) }
func (allServers) WaitConfirmed(ulog.Stamp, int, int) error { return nil }
func (allServers) Admits(_, _ int) error                    { return nil }
