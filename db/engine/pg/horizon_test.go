package pg_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/pg"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

func updates(name string) []ulog.Update {
	return []ulog.Update{{SID: 1, Op: ulog.OpSet, Key: []byte(name), Value: append(record.AppendXT(nil, engine.Forever), '1')}}
}

// stamps returns those of the groups behind one and up to another one.
func stamps(t *testing.T, c *pgx.Conn, after, upTo int64) []int64 {
	rows, err := c.Query(t.Context(), "SELECT stamp FROM gotycoon.groups_0 WHERE stamp > $1 AND stamp <= $2 ORDER BY stamp", after, upTo)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	return found
}

// Readers follow the log while writers draw stamps and commit some time later. The engine's reader
// misses nothing. Two others, with horizons that look right, do: else the test would show nothing.
func TestHorizon(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{})
	defer e.Close()
	const each = 150
	var work sync.WaitGroup
	var mu sync.Mutex
	want := []int64{}
	for lane := uint64(1); lane <= 6; lane++ {
		c, dice := direct(t, url), rand.New(rand.NewPCG(lane, 1))
		run(t, c, "SET search_path = gotycoon")
		run(t, c, "INSERT INTO writers VALUES ($1, 'x')", int64(lane))
		work.Go(func() {
			for seq := range each {
				var at int64
				err := pgx.BeginFunc(context.Background(), c, func(tx pgx.Tx) error {
					err := tx.QueryRow(context.Background(), "SELECT put_0($1, 'x', $2, $3, $4, $5, $6, 1, '', false)", int64(lane), int64(seq), int64(lane)<<33|int64(seq),
						[][]byte{[]byte(fmt.Sprint(lane, seq))}, [][]byte{[]byte("1")}, []int64{engine.Forever}).Scan(&at)
					if dice.IntN(3) == 0 {
						<-time.After(time.Duration(dice.IntN(10)) * time.Millisecond)
					}
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				want = append(want, at)
				mu.Unlock()
			}
		})
	}
	// A horizon returns up to where a reader goes, after it has waited as it thinks right.
	last := func(c *pgx.Conn) (at int64) {
		require.NoError(t, c.QueryRow(t.Context(), "SELECT last_value FROM gotycoon.stamps").Scan(&at))
		return at
	}
	horizons := map[string]func(c *pgx.Conn) int64{
		"the engine's": func(*pgx.Conn) int64 {
			at, err := e.Horizon(t.Context())
			require.NoError(t, err)
			return int64(at)
		},
		"the last stamp": last,
		"xmin behind an earlier xmax": func(c *pgx.Conn) int64 {
			at := last(c)
			var before string
			require.NoError(t, c.QueryRow(t.Context(), "SELECT pg_snapshot_xmax(pg_current_snapshot())::text").Scan(&before))
			for done := false; !done; {
				require.NoError(t, c.QueryRow(t.Context(), "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8", before).Scan(&done))
			}
			return at
		},
	}
	ended := make(chan struct{})
	go func() {
		work.Wait()
		close(ended)
	}()
	var readers sync.WaitGroup
	seen := map[string][]int64{}
	for name, horizon := range horizons {
		c := direct(t, url)
		readers.Go(func() {
			var found []int64
			for after, over := int64(0), false; !over; {
				select {
				case <-ended:
					over = true // once more
				case <-time.After(time.Millisecond):
				}
				upTo := horizon(c)
				found = append(found, stamps(t, c, after, upTo)...)
				after = upTo
			}
			mu.Lock()
			defer mu.Unlock()
			seen[name] = found
		})
	}
	readers.Wait()
	slices.Sort(want)
	for name, found := range seen {
		t.Logf("%s: misses %d of %d", name, len(want)-len(found), len(want))
		if name == "the engine's" {
			require.Equal(t, want, found)
		} else {
			require.Less(t, len(found), len(want), name)
		}
	}
}
