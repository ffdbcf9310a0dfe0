package db

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
)

// A bulk gives what a get of each key gives, in the order of the keys: of records that are live,
// expired, claimed, large or missing, and in a transaction that everybody sees.
func TestABulkGivesWhatGetsGive(t *testing.T) {
	for _, expr := range []string{"%", ":", "FILE"} {
		t.Run(expr, func(t *testing.T) {
			if expr == "FILE" {
				expr = t.TempDir() + "/a.kct"
			}
			now := newClock()
			d := mustOpen(t, Options{Now: now.now}, expr).DB(0)
			d.Watch(WatchOptions{Claims: true})
			alone(d)
			var keys [][]byte
			for i := range 1000 {
				key := fmt.Appendf(nil, "key%d", i%900) // some are twice in a bulk
				keys = append(keys, key)
				xt, value := record.XT(record.Never), fmt.Appendf(nil, "value %d", i)
				switch i % 100 {
				case 7:
					continue
				case 8:
					xt = 10
				case 9:
					value = make([]byte, 70_000)
				}
				require.NoError(t, d.Set(nil, key, value, xt))
				if i == 500 {
					require.NoError(t, d.Synchronize(false, nil))
				}
			}
			now.advance(20)
			same := func(expired, gone int) {
				t.Helper()
				var want, got []string
				misses := 0
				for i, key := range keys {
					value, xt, err := d.Get(nil, nil, key)
					if errors.Is(err, dberr.ErrNoRecord) {
						misses++
						continue
					}
					require.NoError(t, err)
					want = append(want, fmt.Sprint(i, len(value), string(value[:min(20, len(value))]), xt))
				}
				require.Equal(t, expired+gone, misses)
				require.NoError(t, d.GetBulk(nil, keys, false, func(i int, value []byte, xt int64) {
					got = append(got, fmt.Sprint(i, len(value), string(value[:min(20, len(value))]), xt))
				}))
				require.Equal(t, want, got)
			}
			expired, missing := 0, 0
			for i := range keys {
				switch i % 900 % 100 {
				case 7:
					missing++
				case 8:
					expired++
				}
			}
			same(expired, missing)
			if d.expr.Kind.Ordered() {
				claim, err := d.Claim(nil, nil, []byte("key"), nil)
				require.NoError(t, err)
				same(expired, missing+2) // key0 is in the bulk twice
				require.NoError(t, claim.GiveBack(nil))
			}
			tx, err := d.Begin(nil, false)
			require.NoError(t, err)
			tx.Share()
			require.NoError(t, d.Remove(nil, []byte("key1")))
			same(expired, missing+2)
			require.NoError(t, tx.Abort())
			same(expired, missing)
		})
	}
}
