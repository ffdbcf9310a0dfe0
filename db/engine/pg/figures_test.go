package pg_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/pg"
	"gotycoon/ulog"
)

// Figures tell of the log, and of a transaction that somebody has left open.
func TestFigures(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{})
	f, err := e.Figures(t.Context())
	require.NoError(t, err)
	require.Contains(t, f.Durability, "no synchronous standby")
	require.True(t, f.Weak, "the tests' server has fsync=off")
	require.Nil(t, f.LogAge)
	require.Nil(t, f.ReplicaLag)
	require.Positive(t, e.Connections())

	lane, err := e.Lane(t.Context())
	require.NoError(t, err)
	r, err := e.Write(t.Context(), &engine.Group{ID: engine.GroupID{Lane: lane, Seq: 1}, Changes: []engine.Change{{
		Key: engine.Key{Key: []byte("k")}, If: engine.Any, Value: []byte("v"), Log: []ulog.Update{{Op: ulog.OpSet, Key: []byte("k"), Value: []byte("v")}},
	}}})
	require.NoError(t, err)
	require.True(t, r.Made())
	idle, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer idle.Close(t.Context())
	require.Zero(t, f.HorizonAge)
	_, err = idle.Exec(t.Context(), "BEGIN; SET LOCAL search_path = gotycoon; SELECT stamp(1, 0), pg_sleep(0.02)")
	require.NoError(t, err)
	f, err = e.Figures(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, f.HorizonAge.Milliseconds(), int64(20))
	require.NotNil(t, f.LogAge)
	require.Positive(t, f.LogBytes)
	require.GreaterOrEqual(t, f.OldestTransaction.Milliseconds(), int64(20))
	require.NoError(t, e.Close())
}
