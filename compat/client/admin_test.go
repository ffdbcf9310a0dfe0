package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

func TestEchoAndReport(t *testing.T) {
	c, _, tree := open(t)
	rows, err := c.Echo(t.Context(), "a", "1", "b\t", "\x00")
	require.NoError(t, err)
	require.Equal(t, client.Rows{"a": []byte("1"), "b\t": {0}}, rows)
	rows, err = c.Report(t.Context())
	require.NoError(t, err)
	require.Contains(t, string(rows["db_1"]), "path=tree")
	rows, err = tree.Status(t.Context())
	require.NoError(t, err)
	require.Zero(t, rows.Int("count"))
	require.NoError(t, tree.Vacuum(t.Context(), 0))
	require.NoError(t, tree.Vacuum(t.Context(), 10))
	require.NoError(t, tree.Synchronize(t.Context(), true, ""))
}

func TestUpdateLog(t *testing.T) {
	c, db, _ := open(t)
	files, err := c.UlogList(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, files)
	last := files[len(files)-1].Last
	require.NoError(t, db.Set(t.Context(), "followed", []byte("v"), client.Never))
	require.NoError(t, db.Remove(t.Context(), "followed"))

	var stamps []uint64
	for u, err := range c.FollowLog(t.Context(), last, 0, false) {
		require.NoError(t, err)
		if u.Heartbeat {
			break
		}
		require.NotEmpty(t, u.Log)
		stamps = append(stamps, u.TS)
	}
	require.Len(t, stamps, 2)
	require.Less(t, last, stamps[0])
	require.Less(t, stamps[0], stamps[1])

	for u, err := range c.FollowLog(t.Context(), last, 1, false) {
		require.NoError(t, err)
		require.Empty(t, u.Log, "updates of server 1 are left out")
		if u.Heartbeat {
			break
		}
	}
	require.NoError(t, c.UlogRemove(t.Context(), 0))
	err = c.TuneReplication(t.Context(), client.Master{Host: "localhost", TS: "now"})
	require.EqualError(t, err, "1: not implemented: the RTS file is not set")
	_, err = db.PlayScript(t.Context(), "echo", map[string][]byte{"a": nil})
	require.Error(t, err)
}
