package expr

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The numbers are recorded.
func TestSizesOfTheOriginal(t *testing.T) {
	for _, c := range []struct {
		raw  string
		size int64
	}{
		{":", 8388664},
		{":#bnum=100", 800},
		{"*", 8390592},
		{"%", 526693},
		{"-", 0},
		{"+", 0},
		{"x.kch", 6297720},
		{"x.kch#bnum=1000", 12224},
		{"x.kct", 400128},
		{"x.kcd", 0},
		{"x.kcf", 157},
		{"x.kcx", 0},
	} {
		e, err := Parse(c.raw)
		require.NoError(t, err)
		require.Equal(t, c.size, BaseSize(e), c.raw)
	}
}

func TestAbsurdParametersHaveASize(t *testing.T) {
	for _, raw := range []string{"%#bnum=7e", "*#bnum=1", "x.kch#apow=1e#fpow=1e", "x.kch#fpow=0#opts=s"} {
		e, err := Parse(raw)
		require.NoError(t, err)
		require.Positive(t, BaseSize(e), raw)
	}
}
