package pg_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/pg"
)

// Rows that gotycoon has not made, as somebody could have put them into its tables by hand, are
// errors.
func TestForeignRows(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{})
	defer e.Close()
	admin := direct(t, url)
	term := termOf(t, admin, "claims/7", time.Hour)
	run(t, admin, "ALTER TABLE gotycoon.r0 ALTER v DROP NOT NULL, ALTER xt DROP NOT NULL, ALTER ver DROP NOT NULL")
	run(t, admin, "ALTER TABLE gotycoon.claimed ALTER v DROP NOT NULL, ALTER xt DROP NOT NULL, ALTER ver DROP NOT NULL")
	number := uint64(0)
	for name, values := range map[string]string{
		"no value": "NULL, 1099511627775, 100", "no expiration time": "'x', NULL, 100", "no revision": "'x', 1099511627775, NULL",
		"expiration time below 0": "'x', -1, 100", "expiration time behind the last one": "'x', 1099511627776, 100",
		"a revision that is a condition": "'x', 1099511627775, 1", "a revision below 0": "'x', 1099511627775, -1",
	} {
		t.Run(name, func(t *testing.T) {
			refused := func(err error) {
				t.Helper()
				require.ErrorContains(t, err, "has not made")
				require.Equal(t, engine.Refused, engine.KindOf(err))
			}
			run(t, admin, "TRUNCATE gotycoon.r0, gotycoon.claimed")
			run(t, admin, "INSERT INTO gotycoon.r0 VALUES ('q 1', "+values+")")
			for _, most := range []int{0, 10} {
				recs, err := e.Read(t.Context(), []engine.Key{key("q 1"), key("q 2")}, engine.Reading{Most: most})
				if len(recs) > 0 || err != nil { // a row without a revision may be one of a hold
					refused(err)
				}
				for _, bytes := range []int{0, 100} {
					_, err = e.Scan(t.Context(), engine.Scan{Edge: true, Limit: 10, Bytes: bytes, Most: most})
					refused(err)
				}
			}
			number++
			id := engine.ClaimID{By: term, Number: number}
			_, found, err := e.Claims().Take(t.Context(), id, engine.Claim{Prefix: []byte("q ")})
			if found || err != nil {
				refused(err)
			}
			run(t, admin, "TRUNCATE gotycoon.claimed")
			run(t, admin, "INSERT INTO gotycoon.claimed (holder, term, mark, number, db, k, v, xt, ver) VALUES ('claims/7', 0, '', $1, 0, 'q 1', "+values+")", number)
			_, err = e.Claims().Abandoned(t.Context(), 10, 1000)
			refused(err)
		})
	}
}

func TestForeignGroups(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{})
	defer e.Close()
	run(t, direct(t, url), "INSERT INTO gotycoon.groups_0 (lane, seq, stamp, n, ups, place) VALUES (1, 1, 7, 0, 0, 'x')")
	_, _, err := e.Log().Read(t.Context(), 0, 1000)
	require.Equal(t, engine.Refused, engine.KindOf(err))
}

func TestForeignNames(t *testing.T) {
	url := setUp(t)
	run(t, direct(t, url), `UPDATE gotycoon.meta SET value = '["../a"]' WHERE name = 'names'`)
	_, err := pg.Open(t.Context(), url, pg.Options{})
	require.ErrorContains(t, err, `"../a"`)
}
