package histogram

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryDurationIsInItsBucket(t *testing.T) {
	for shift := range 63 {
		for _, off := range []int64{-1, 0, 1} {
			d := time.Duration(int64(1)<<shift + off)
			b := bucketOf(d)
			require.GreaterOrEqual(t, upperEnd(b), d)
			if b > 0 {
				require.Less(t, upperEnd(b-1), d, "%d belongs to an earlier bucket", d)
			}
		}
	}
	require.Equal(t, 0, bucketOf(-time.Second))
	require.Less(t, bucketOf(math.MaxInt64), buckets)
}

func TestQuantilesAreWithinTheirError(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	all := make([]time.Duration, 100_000)
	for i := range all {
		all[i] = time.Duration(math.Exp(rnd.NormFloat64()*2 + 12)) // a long tail around 160 µs
		h.Add(all[i])
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999, 0.9999, 1} {
		exact := all[max(0, int(math.Ceil(q*float64(len(all))))-1)]
		require.GreaterOrEqual(t, h.Quantile(q), exact)
		require.LessOrEqual(t, float64(h.Quantile(q)), float64(exact)*(1+1.0/subBuckets), "q = %v", q)
	}
	require.Equal(t, all[len(all)-1], h.Quantile(1))
}

func TestMergedHistogramsCountAll(t *testing.T) {
	var a, b, both Histogram
	for i := range 1000 {
		d := time.Duration(i * i)
		both.Add(d)
		if i%3 == 0 {
			a.Add(d)
		} else {
			b.Add(d)
		}
	}
	a.Merge(&b)
	require.Equal(t, both, a)
	require.Equal(t, time.Duration(0), new(Histogram).Quantile(0.99))
}
