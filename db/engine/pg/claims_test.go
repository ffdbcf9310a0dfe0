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
	term := engine.Term{Name: name, Number: 1, Mark: [16]byte{1}}
	run(t, admin, "INSERT INTO gotycoon.leases (name, holder, term, mark, ends) VALUES ($1, 'x', 1, $3, clock_timestamp() + $2 * interval '1 ms')",
		name, lasts.Milliseconds(), term.Mark[:])
	return term
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
	term := termOf(t, admin, "claims/7", time.Hour)
	_, found, err := e.Claims().Take(t.Context(), engine.ClaimID{By: term, Number: 1}, engine.Claim{Prefix: []byte("q ")})
	require.NoError(t, err)
	require.True(t, found)
	run(t, admin, "UPDATE gotycoon.leases SET ends = clock_timestamp() WHERE name = $1", term.Name)
	tx, err := renewal.Begin(t.Context())
	require.NoError(t, err)
	// The renewal has looked at the lease in time: so this statement does not look again.
	tag, err := tx.Exec(t.Context(), "UPDATE gotycoon.leases SET ends = clock_timestamp() + interval '1 hour' WHERE name = $1", term.Name)
	require.NoError(t, err)
	require.EqualValues(t, 1, tag.RowsAffected())
	var over bool
	require.NoError(t, admin.QueryRow(t.Context(), "SELECT ends <= clock_timestamp() FROM gotycoon.leases WHERE name = $1", term.Name).Scan(&over))
	require.True(t, over)
	require.Zero(t, abandoned())
	require.NoError(t, tx.Commit(t.Context()))
	require.Zero(t, abandoned())
	run(t, admin, "UPDATE gotycoon.leases SET ends = clock_timestamp()")
	require.Equal(t, 1, abandoned())
}

// However many clients claim records that PostgreSQL is slow to give them, leases are renewed.
func TestClaimsLeaveRoomForLeases(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{Lease: 9 * time.Second})
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
	awaitRenewals(t, admin, "claims/7", lost)
	assert.NoError(t, tx.Commit(t.Context()))
	work.Wait()
}

// awaitRenewals waits until the end of a lease has been put off twice, and fails the test, without
// ending it, if the lease is lost meanwhile. How long that takes is left to the machine.
func awaitRenewals(t *testing.T, admin *pgx.Conn, name string, lost <-chan struct{}) {
	var last time.Time
	grown := -1 // the first look finds an end
	assert.Eventually(t, func() bool {
		select {
		case <-lost:
			assert.Fail(t, "the lease was lost")
			return true // nothing is left to wait for
		default:
		}
		var ends time.Time
		if !assert.NoError(t, admin.QueryRow(t.Context(), "SELECT ends FROM gotycoon.leases WHERE name = $1", name).Scan(&ends)) {
			return true
		}
		if ends.After(last) {
			last = ends
			grown++
		}
		return grown == 2
	}, 30*time.Second, 10*time.Millisecond, "the lease is not renewed")
}

// A PostgreSQL that was taken back to before it gave out a term gives out the same number again. The
// former holder finds out, and can neither end a claim of the new one nor write under its guard.
func TestATermThatIsGivenOutAgain(t *testing.T) {
	url := setUp(t)
	a, b := open(t, url, pg.Options{Lease: 3 * time.Second}), open(t, url, pg.Options{})
	defer a.Close()
	defer b.Close()
	write(t, a, lane(t, a), "q 1")
	take := func(e *pg.Engine) (id engine.ClaimID, key string, lost <-chan struct{}) {
		term, lost, err := e.Leases().Hold(t.Context(), "claims/0")
		require.NoError(t, err)
		id = engine.ClaimID{By: term, Number: 1}
		r, found, err := e.Claims().Take(t.Context(), id, engine.Claim{Prefix: []byte("q ")})
		require.NoError(t, err)
		require.True(t, found)
		return id, string(r.Key.Key), lost
	}
	former, key, lost := take(a)
	require.Equal(t, "q 1", key)
	run(t, direct(t, url), "TRUNCATE gotycoon.leases, gotycoon.claimed")
	write(t, b, lane(t, b), "q 2")
	present, key, _ := take(b)
	require.Equal(t, "q 2", key)
	require.Equal(t, former.By.Number, present.By.Number)

	require.ErrorIs(t, a.Claims().Finish(t.Context(), &engine.Claimed{ID: former}, updates("q 1")[0]), engine.ErrUnclaimed)
	_, found, err := a.Claims().Settle(t.Context(), former)
	require.NoError(t, err)
	require.False(t, found)
	_, err = a.Claims().GiveBack(t.Context(), former, updates("q 1")[0])
	require.NoError(t, err, "the claim has ended")
	_, _, err = a.Claims().Take(t.Context(), engine.ClaimID{By: former.By, Number: 2}, engine.Claim{Prefix: []byte("q ")})
	require.ErrorIs(t, err, engine.ErrFenced)
	_, err = a.Write(t.Context(), &engine.Group{ID: engine.GroupID{Lane: lane(t, a), Seq: 1}, Guard: &former.By, Clear: &engine.Clear{}})
	require.ErrorIs(t, err, engine.ErrFenced)
	select {
	case <-lost:
	case <-time.After(10 * time.Second):
		require.Fail(t, "the former holder renews the lease of the present one")
	}
	_, found, err = b.Claims().Settle(t.Context(), present)
	require.NoError(t, err)
	require.True(t, found)
	taken, err := b.Claims().GiveBack(t.Context(), present, updates("q 2")[0])
	require.NoError(t, err)
	require.False(t, taken)
	recs, err := b.Read(t.Context(), []engine.Key{{Key: []byte("q 2")}}, engine.Reading{})
	require.NoError(t, err)
	require.Len(t, recs, 1)
}
