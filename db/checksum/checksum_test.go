package checksum

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that tests move.
type clock struct{ seconds atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.seconds.Store(1_800_000_000)
	return c
}

func (c *clock) now() time.Time  { return time.Unix(c.seconds.Load(), 0) }
func (c *clock) advance(s int64) { c.seconds.Add(s) }

// open opens a catalog and closes it after the test.
func open(t *testing.T, now *clock, exprs ...string) *db.Catalog {
	t.Helper()
	c, err := db.Open(exprs, db.Options{Now: now.now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// fillForChecksum stores the same records in a database, in an order of its own.
func fillForChecksum(t *testing.T, d *db.DB, n, step int) {
	t.Helper()
	for i := range n {
		j := i * step % n // step and n have no common factor
		xt := record.Never
		if j%3 == 0 {
			xt = record.XT(-1_900_000_000 - j)
		}
		require.NoError(t, d.Set(nil, fmt.Appendf(nil, "key%05d", j), fmt.Appendf(nil, "value of %d", j), xt))
	}
}

// TestChecksumOfKinds gives databases of all kinds with the same records the same checksums.
func TestChecksumOfKinds(t *testing.T) {
	c := open(t, newClock(), ":", "*", "%", "-", t.TempDir()+"/a.kct", "%#rcomp=lexdesc", "+")
	const n = 1499 // a prime; more than is read in one step
	var want []Part
	for i := range c.Len() {
		d := c.DB(i)
		fillForChecksum(t, d, n, 2*i+7)
		for _, o := range []Options{{}, {Hash: true}, {Hash: true, Parts: 64}} {
			parts, err := Sum(d, nil, []Range{{}}, o)
			require.NoError(t, err)
			if i == 0 {
				want = append(want, parts...)
				continue
			}
			requirePartsOf(t, want, parts)
		}
	}
	require.Len(t, want, 1+1+64)
	var count int64
	var sum uint64
	for _, p := range want[2:] {
		require.InDelta(t, n/64, p.Count, n/64, "records are spread evenly")
		count, sum = count+p.Count, sum+p.Sum
	}
	require.Equal(t, int64(n), count)
	require.Equal(t, want[0].Sum, sum)
	require.Equal(t, want[1].Sum, sum)
}

// TestChecksumByKey divides what is in the order of the keys into parts of about as many records,
// which others are asked for.
func TestChecksumByKey(t *testing.T) {
	c := open(t, newClock(), "%", ":")
	tree, hash := c.DB(0), c.DB(1)
	fillForChecksum(t, tree, 1000, 7)
	fillForChecksum(t, hash, 1000, 11)
	parts, err := Sum(tree, nil, []Range{{}}, Options{Parts: 10})
	require.NoError(t, err)
	require.Greater(t, len(parts), 9)
	require.LessOrEqual(t, len(parts), 20)
	var ranges []Range
	for i, p := range parts {
		require.Less(t, p.Count, int64(200))
		if i > 0 {
			require.Equal(t, parts[i-1].To, p.From)
		}
		ranges = append(ranges, p.Range)
	}
	require.Empty(t, parts[0].From)
	require.Empty(t, parts[len(parts)-1].To)
	same, err := Sum(hash, nil, ranges, Options{})
	require.NoError(t, err)
	require.Equal(t, parts, same)
	_, err = Sum(hash, nil, ranges, Options{Parts: 2})
	require.ErrorIs(t, err, dberr.ErrNotImplemented)

	some := []Range{{[]byte("key00010"), []byte("key00012")}, {[]byte("key00500"), []byte("key00501")}}
	for _, d := range []*db.DB{tree, hash} {
		found, more, err := Digests(d, nil, some, Options{}, 3)
		require.NoError(t, err)
		require.False(t, more)
		require.Len(t, found, 3)
		_, more, err = Digests(d, nil, some, Options{}, 2)
		require.NoError(t, err)
		require.True(t, more)
	}
}

// TestChecksumSeesEverything of a record, but none that has expired.
func TestChecksumSeesEverything(t *testing.T) {
	clock := newClock()
	d := open(t, clock, ":").DB(0)
	seen := map[uint64]string{}
	look := func(what string, o Options) uint64 {
		parts, err := Sum(d, nil, []Range{{}}, o)
		require.NoError(t, err)
		return parts[0].Sum
	}
	for _, c := range []struct {
		key, value string
		xt         record.XT
	}{{"a", "b", record.Never}, {"a", "c", record.Never}, {"a", "c", 100}, {"a", "c", 101}, {"ac", "", 101}} {
		require.NoError(t, d.Clear(nil))
		require.NoError(t, d.Set(nil, []byte(c.key), []byte(c.value), c.xt))
		sum := look(c.key, Options{})
		require.NotContains(t, seen, sum, "%v", c)
		seen[sum] = c.key
	}
	require.Zero(t, look("expired by then", Options{At: clock.now().Unix() + 102}))
	clock.advance(102)
	require.Zero(t, look("expired", Options{}))
}

// TestDivideHashes leaves nothing out and nothing twice.
func TestDivideHashes(t *testing.T) {
	for _, r := range []Range{{}, {[]byte("8000000000000000"), nil}, {nil, []byte("0000000000000003")}, {[]byte("0000000000000003"), []byte("0000000000000004")}} {
		for _, parts := range []uint64{1, 2, 3, 7, 64, 4096} {
			all := divideHashes([]Range{r}, parts)
			require.LessOrEqual(t, len(all), int(parts))
			require.Equal(t, r.From, all[0].From)
			require.Equal(t, r.To, all[len(all)-1].To)
			for i := 1; i < len(all); i++ {
				require.Equal(t, all[i-1].To, all[i].From)
				require.Less(t, string(all[i-1].From), string(all[i].From))
			}
		}
	}
}

func requirePartsOf(t *testing.T, all, some []Part) {
	t.Helper()
	for _, p := range some {
		require.True(t, slices.ContainsFunc(all, func(q Part) bool {
			return p.Count == q.Count && p.Sum == q.Sum && string(p.From) == string(q.From) && string(p.To) == string(q.To)
		}), "%+v", p)
	}
}
