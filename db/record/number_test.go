package record

import (
	"encoding/hex"
	"gotycoon/db/dberr"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddInt(t *testing.T) {
	for _, c := range []struct {
		name      string
		old       string
		exists    bool
		num, orig int64
		sum       int64
		write     bool
		fails     bool
	}{
		{"sums wrap around", "7fffffffffffffff", true, 2, 0, math.MinInt64 + 1, true, false},
		{"the least number is stored and reported as an error", "7fffffffffffffff", true, 1, 0, math.MinInt64, true, true},
		{"reading the least number is an error", "8000000000000000", true, 0, 0, math.MinInt64, false, true},
		{"a value of another size is an error even to set", "00", true, 1, origSet, 0, false, true},
		{"an empty value is not a missing record", "", true, 1, 0, 0, false, true},
		{"zero creates a missing record", "", false, 0, 7, 7, true, false},
		{"zero does not touch a record", "0000000000000005", true, 0, 7, 5, false, false},
		{"zero sets", "0000000000000005", true, 0, origSet, 0, true, false},
		{"a missing record is not tried", "", false, 1, OrigTry, 0, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, err := hex.DecodeString(c.old)
			require.NoError(t, err)
			sum, write, err := AddInt(old, c.exists, c.num, c.orig)
			require.Equal(t, c.write, write)
			require.Equal(t, c.fails, err != nil)
			require.Equal(t, c.sum, sum)
		})
	}
}

func TestAddDouble(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	none := decimal{}
	for _, c := range []struct {
		name      string
		old       decimal
		num, orig float64
		want      decimal
		sum       float64
	}{
		{"what 53 bits would round is cut", none, 0.3, 0, decimal{0, 299999999999999}, 0.3 - 1e-15},
		{"negative fractions stay as they are", decimal{0, -75e13}, -0.75, 0, decimal{0, -15e14}, -1.5},
		{"positive fractions are carried", decimal{0, 75e13}, 0.75, 0, decimal{1, 5e14}, 1.5},
		{"a fraction that would not fit is carried", decimal{0, math.MinInt64 + 1}, -0.75, 0,
			decimal{-9223, -1122036854775807}, -9224.122036854775},
		{"infinity absorbs", infinite(1), math.Inf(-1), 0, infinite(1), inf},
		{"infinity with a fraction is infinity", decimal{math.MaxInt64, 5}, 1, 0, decimal{math.MaxInt64, 5}, inf},
		{"an infinity can be overwritten by its neighbour", decimal{1, 0}, -inf, 0, infinite(-1), -inf},
		{"beyond 64 bits is infinity", decimal{1, 0}, 1e30, 0, infinite(1), inf},
		{"beyond -64 bits is infinity", decimal{1, 0}, -1e30, 0, infinite(-1), -inf},
		{"a sum beyond 64 bits is infinity", decimal{1 << 62, 0}, 1 << 62, 0, infinite(1), inf},
		{"carrying can make infinity", decimal{math.MaxInt64 - 1, 75e13}, 0.75, 0, infinite(1), inf},
		{"negative zero reads", decimal{2, 0}, math.Copysign(0, -1), 0, decimal{2, 0}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			sum, stored, write, err := AddDouble(c.old.encode(), true, c.num, c.orig)
			require.NoError(t, err)
			require.InDelta(t, c.sum, sum, 1e-11)
			if !write {
				stored = c.old.encode()
			}
			require.Equal(t, c.want, decodeDecimal(stored))
		})
	}

	_, stored, write, err := AddDouble(decimal{1, 0}.encode(), true, nan, 0)
	require.ErrorIs(t, err, dberr.ErrLogic)
	require.True(t, write)
	require.Equal(t, decimal{math.MinInt64, math.MinInt64}, decodeDecimal(stored))

	_, _, write, err = AddDouble(stored, true, 1, 0)
	require.ErrorIs(t, err, dberr.ErrLogic, "NaN absorbs")
	require.False(t, write)
}
