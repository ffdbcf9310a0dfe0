package db

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The numbers are recorded.
func TestSizesOfTheOriginal(t *testing.T) {
	for _, c := range []struct {
		expr             string
		records          int64
		keyLen, valueLen int
		size             int64
	}{
		{":", 0, 0, 0, 8388664},
		{":", 10, 4, 6, 8388884},
		{":", 100, 6, 25, 8392964},
		{":#bnum=100", 0, 0, 0, 800},
		{"*", 0, 0, 0, 8390592},
		{"*", 1, 1, 6, 8390639},
		{"*#bnum=100", 176, 4, 6, 11552},
		{"%", 0, 0, 0, 526693},
		{"%", 10, 4, 6, 526813},
		{"-", 1, 1, 6, 7},
		{"+", 1, 1, 6, 7},
		{"x.kch", 0, 0, 0, 6297720},
		{"x.kch", 1, 3, 10, 6297752},
		{"x.kch#bnum=1000", 0, 0, 0, 12224},
		{"x.kct", 0, 0, 0, 400128},
		{"x.kcd", 1, 3, 10, 49},
		{"x.kcf", 0, 0, 0, 157},
		{"x.kcx", 1, 16, 5, 6},
	} {
		e, err := ParseExpr(c.expr)
		require.NoError(t, err)
		require.Equal(t, c.size, baseSize(e)+c.records*recordSize(e, c.keyLen, c.valueLen), "%s with %d", c.expr, c.records)
	}
}

func TestAbsurdParametersHaveASize(t *testing.T) {
	for _, expr := range []string{"%#bnum=7e", "*#bnum=1", "x.kch#apow=1e#fpow=1e", "x.kch#fpow=0#opts=s"} {
		e, err := ParseExpr(expr)
		require.NoError(t, err)
		require.Positive(t, baseSize(e), expr)
	}
}
