package pg_test

import (
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/pg"
)

// termOf makes a term of a lease that nobody holds, which lasts for some time.
func termOf(t *testing.T, admin *pgx.Conn, name string, lasts time.Duration) engine.Term {
	run(t, admin, "INSERT INTO gotycoon.leases VALUES ($1, 'x', 1, clock_timestamp() + $2 * interval '1 ms')", name, lasts.Milliseconds())
	return engine.Term{Name: name, Number: 1}
}

// A lease may have ended for everybody who looks, while its holder has renewed it in time and waits
// for the commit, which a standby delays. What is claimed in its term is not abandoned.
func TestARenewalThatCommitsLate(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{})
	defer e.Close()
	renewal, admin := direct(t, url), direct(t, url)
	write(t, e, lane(t, e), "q 1")
	abandoned := func() int {
		all, err := e.Claims().Abandoned(t.Context(), 10, 1000)
		require.NoError(t, err)
		return len(all)
	}
	term := termOf(t, admin, "claims/7", 300*time.Millisecond)
	_, found, err := e.Claims().Take(t.Context(), engine.ClaimID{By: term, Number: 1}, engine.Claim{Prefix: []byte("q ")})
	require.NoError(t, err)
	require.True(t, found)
	tx, err := renewal.Begin(t.Context())
	require.NoError(t, err)
	tag, err := tx.Exec(t.Context(), `UPDATE gotycoon.leases SET ends = clock_timestamp() + interval '1 hour'
		WHERE name = $1 AND ends > clock_timestamp()`, term.Name)
	require.NoError(t, err)
	require.EqualValues(t, 1, tag.RowsAffected())
	require.Eventually(t, func() bool {
		var over bool
		require.NoError(t, admin.QueryRow(t.Context(), "SELECT ends < clock_timestamp() FROM gotycoon.leases WHERE name = $1", term.Name).Scan(&over))
		return over
	}, 5*time.Second, 10*time.Millisecond)
	require.Zero(t, abandoned())
	require.NoError(t, tx.Commit(t.Context()))
	require.Zero(t, abandoned())
	run(t, admin, "UPDATE gotycoon.leases SET ends = clock_timestamp()")
	require.Equal(t, 1, abandoned())
}

// However many clients claim records that PostgreSQL is slow to give them, leases are renewed.
func TestClaimsLeaveRoomForLeases(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{Lease: 900 * time.Millisecond})
	defer e.Close()
	term, lost, err := e.Leases().Hold(t.Context(), "claims/7")
	require.NoError(t, err)
	write(t, e, lane(t, e), "q 1")
	admin := direct(t, url)
	tx, err := admin.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE gotycoon.claimed")
	require.NoError(t, err)
	var work sync.WaitGroup
	for i := range 20 {
		work.Go(func() {
			_, _, err := e.Claims().Settle(t.Context(), engine.ClaimID{By: term, Number: uint64(i + 1)})
			assertNoError(t, err)
		})
	}
	select {
	case <-lost:
		assert.Fail(t, "the lease was lost")
	case <-time.After(1200 * time.Millisecond):
	}
	assert.NoError(t, tx.Commit(t.Context()))
	work.Wait()
}
