package pg_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/pg"
	"gotycoon/db/engine/pg/pgtest"
)

// A PostgreSQL that was taken back to before a message was taken has the message, and no claim of
// it. The term may be the same: the lease was there before, and its holder renews it. Who finishes
// the message must not be told that it is gone. A claim from before that moment can be finished.
func TestAFinishAfterThePast(t *testing.T) {
	s := pgtest.Own(t)
	url := pgtest.Database(t, s)
	initialise(t, url)
	e := open(t, url, pg.Options{Lease: time.Hour})
	defer e.Close()
	write(t, e, lane(t, e), "q 0")
	write(t, e, lane(t, e), "q 1")
	term, lost, err := e.Leases().Hold(t.Context(), "claims/0")
	require.NoError(t, err)
	id := engine.ClaimID{By: term}
	take := func() *engine.Claimed {
		for tries := 0; ; tries++ { // a connection that was cut has taken nothing
			id.Number++
			r, found, err := e.Claims().Take(t.Context(), id, engine.Claim{Prefix: []byte("q ")})
			if err == nil {
				require.True(t, found)
				return &engine.Claimed{ID: id, Record: r}
			}
			require.Less(t, tries, 20, "%v", err)
		}
	}
	finish := func(c *engine.Claimed) (err error) {
		for range 20 { // until its connections are new ones
			err = e.Claims().Finish(t.Context(), c, updates(string(c.Key.Key))[0])
			if engine.KindOf(err) != engine.Undone {
				break
			}
		}
		return err
	}
	zero := take()
	require.NoError(t, s.Stop())
	back := pgtest.Keep(t, s)
	require.NoError(t, s.Start())
	one := take()
	require.Equal(t, "q 1", string(one.Key.Key))
	require.NoError(t, s.Crash())
	back()
	require.NoError(t, s.Start())

	require.ErrorIs(t, finish(one), engine.ErrUnclaimed)
	recs, err := e.Read(t.Context(), []engine.Key{key("q 1")}, engine.Reading{})
	require.NoError(t, err)
	require.Len(t, recs, 1)
	require.Equal(t, "q 1", string(take().Key.Key))
	require.NoError(t, finish(zero))
	require.NoError(t, finish(zero))
	select {
	case <-lost:
		require.Fail(t, "the term has ended, which is another case")
	default:
	}
}

// A finish whose lane was lost takes another one, and then knows that it was made.
func TestAFinishOfALostLane(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{})
	defer e.Close()
	write(t, e, lane(t, e), "q 1")
	c := &engine.Claimed{ID: engine.ClaimID{By: termOf(t, direct(t, url), "claims/7", time.Hour), Number: 1}}
	_, found, err := e.Claims().Take(t.Context(), c.ID, engine.Claim{Prefix: []byte("q ")})
	require.NoError(t, err)
	require.True(t, found)
	tryWhileLocked(t, e, c)
	was := c.End
	require.NotZero(t, was)
	lose(t, url)
	err = engine.ErrUndone
	for tries := 0; err != nil; tries++ {
		require.Less(t, tries, 20, "%v", err)
		err = e.Claims().Finish(t.Context(), c, updates("q 1")[0])
	}
	require.NotEqual(t, was.Lane, c.End.Lane)
	require.NoError(t, e.Claims().Finish(t.Context(), c, updates("q 1")[0]))
	c.End = was // as if another server had the note
	require.ErrorIs(t, e.Claims().Finish(t.Context(), c, updates("q 1")[0]), engine.ErrUnclaimed)
}

// tryWhileLocked makes an attempt to finish a claim, which fails.
func tryWhileLocked(t *testing.T, e *pg.Engine, c *engine.Claimed) {
	x, err := e.Begin(t.Context(), 0)
	require.NoError(t, err)
	defer x.Abort()
	require.Equal(t, engine.Undone, engine.KindOf(e.Claims().Finish(t.Context(), c, updates("q 1")[0])))
}

// An attempt to finish a claim that meets an earlier one which is not committed yet waits for it.
func TestAFinishBesideAnEarlierOne(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{})
	defer e.Close()
	admin := direct(t, url)
	write(t, e, lane(t, e), "q 1")
	c := &engine.Claimed{ID: engine.ClaimID{By: termOf(t, admin, "claims/7", time.Hour), Number: 1}}
	_, found, err := e.Claims().Take(t.Context(), c.ID, engine.Claim{Prefix: []byte("q ")})
	require.NoError(t, err)
	require.True(t, found)
	tryWhileLocked(t, e, c)
	tx, err := direct(t, url).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE gotycoon.groups_0, gotycoon.groups_1, gotycoon.groups_2 IN SHARE MODE")
	require.NoError(t, err)
	done := make(chan error, 2)
	for n := range 2 {
		go func() { one := *c; done <- e.Claims().Finish(t.Context(), &one, updates("q 1")[0]) }()
		require.Eventually(t, func() bool {
			var waiting int
			require.NoError(t, admin.QueryRow(t.Context(), `SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
				WHERE NOT granted AND datname = current_database() AND query LIKE '%finish_%'`).Scan(&waiting))
			return waiting == n+1
		}, 10*time.Second, 10*time.Millisecond)
	}
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-done)
	require.NoError(t, <-done)
}
