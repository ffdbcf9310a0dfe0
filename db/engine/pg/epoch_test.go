package pg_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/pg"
)

// A group with conditions from before is made over a connection that has been there since, and not
// over one that was made later: PostgreSQL may have been taken back to the past meanwhile.
func TestGroupsAndTheirEpoch(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{})
	defer e.Close()
	lane, err := e.Lane(t.Context())
	require.NoError(t, err)
	g := engine.Group{ID: engine.GroupID{Lane: lane}, NoWait: true, Changes: []engine.Change{{Key: key("n"), Value: []byte("1"), XT: engine.Forever}}}
	write := func(value string) error {
		g.ID.Seq++
		g.Changes[0].Value = []byte(value)
		r, err := e.Write(context.Background(), &g)
		switch {
		case err == nil:
			require.True(t, r.Made())
			g.Changes[0].If = r.Revision
		case engine.KindOf(err) == engine.Unknown:
			settled := errors.New("not yet")
			for !errors.Is(settled, engine.ErrUndone) { // the next connections were cut as well
				_, settled = e.Settle(context.Background(), g.ID)
				require.Error(t, settled, "the connection was cut before")
			}
		}
		return err
	}
	require.NoError(t, write("1"))
	written := func(value string) { // at the first attempt, unless the pool has lent its connection to its health check
		err := errors.New("not yet")
		for n := 0; n < 10 && err != nil; n++ {
			g.Epoch = e.Epoch()
			err = write(value)
		}
		require.NoError(t, err)
	}
	written("2")
	c, left := direct(t, url), 1
	const others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
	var pids []int32
	require.NoError(t, c.QueryRow(t.Context(), "SELECT array_agg(pid) "+others).Scan(&pids))
	run(t, c, "SELECT pg_terminate_backend(pid) "+others)
	for left > 0 {
		require.NoError(t, c.QueryRow(t.Context(), "SELECT count(*) "+others+" AND application_name = 'gotycoon' AND pid = ANY($1)", pids).Scan(&left))
	}
	err = write("3")
	for n := 0; n < 10 && engine.KindOf(err) != engine.Undone; n++ { // until a new connection is there
		require.Error(t, err)
		err = write("3")
	}
	require.ErrorContains(t, err, "the connection is a new one")
	require.Error(t, write("4"), "also over the same connection")
	require.Greater(t, e.Epoch(), g.Epoch)
	recs, err := e.Read(t.Context(), []engine.Key{key("n")}, engine.Reading{})
	require.NoError(t, err)
	require.Equal(t, "2", string(recs[0].Value))
	written("5")
}
