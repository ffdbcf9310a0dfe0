package pg_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/pg"
	"gotycoon/db/engine/pg/pgtest"
)

// An administrator who cancels a commit that waits for its standby makes PostgreSQL acknowledge
// what only one machine has, with a warning. Such a group is not acknowledged, and neither is it
// when it is settled, until the standby has it.
func TestCancelledWaitForTheStandby(t *testing.T) {
	s := pgtest.Own(t)
	url := pgtest.Database(t, s)
	initialise(t, url)
	e := open(t, url, pg.Options{})
	defer e.Close()
	lanes := make([]uint64, 3)
	for i := range lanes {
		var err error
		lanes[i], err = e.Lane(t.Context())
		require.NoError(t, err)
	}
	admin, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer admin.Close(context.Background())
	require.NoError(t, s.Configure("synchronous_standby_names = 'nobody'"))
	require.Eventually(t, func() bool { return waits(t, url) }, 20*time.Second, time.Millisecond)

	// interrupt does something to the engine that waits for the standby, and returns how it ends
	interrupt := func(how string, act func(ctx context.Context) error) error {
		t.Helper()
		answer := make(chan error, 1)
		go func() { answer <- act(t.Context()) }()
		require.Eventually(t, func() bool {
			tag, err := admin.Exec(t.Context(), "SELECT "+how+"(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'gotycoon'")
			return err == nil && tag.RowsAffected() > 0
		}, 20*time.Second, time.Millisecond)
		return <-answer
	}
	var open []engine.GroupID
	group := func() *engine.Group {
		id := engine.GroupID{Lane: lanes[len(open)], Seq: 1}
		open = append(open, id)
		return &engine.Group{ID: id, Changes: []engine.Change{{Key: key(fmt.Sprint(id)), Value: []byte("v"), XT: engine.Forever}}}
	}
	for _, how := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
		g := group()
		err := interrupt(how, func(ctx context.Context) error {
			_, err := e.Write(ctx, g)
			return err
		})
		require.Error(t, err, how)
		require.Equal(t, engine.Unknown, engine.KindOf(err), how)
		for range 3 { // each of which finds the notes of the one before
			err := interrupt(how, func(ctx context.Context) error {
				_, err := e.Settle(ctx, g.ID)
				return err
			})
			require.Error(t, err, how)
			require.NotErrorIs(t, err, engine.ErrUndone, how)
		}
	}
	x, err := e.Begin(t.Context(), 0)
	require.NoError(t, err)
	g := group()
	err = interrupt("pg_cancel_backend", func(ctx context.Context) error {
		_, err := x.Commit(ctx, g)
		return err
	})
	require.Error(t, err)
	require.Equal(t, engine.Unknown, engine.KindOf(err))

	require.NoError(t, s.Configure("synchronous_standby_names = ''"))
	for _, id := range open {
		r, err := e.Settle(t.Context(), id)
		require.NoError(t, err)
		require.True(t, r.Made())
	}
}

// waits reports whether a commit waits for the standby. All processes of PostgreSQL but one may
// know of it before.
func waits(t *testing.T, url string) bool {
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer c.Close(context.Background())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = c.Exec(ctx, "INSERT INTO gotycoon.deltas VALUES (0, 0)")
	return err != nil
}
