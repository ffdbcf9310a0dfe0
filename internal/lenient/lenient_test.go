package lenient_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/lenient"
)

func TestInt(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "abc": 0, "5": 5, "+5": 5, "-5": -5, " \t5x": 5, "- 5": 0, "1.9": 1, "0x10": 0,
		"9223372036854775808": math.MinInt64, "99999999999999999999": 7766279631452241919,
		"-9223372036854775808": math.MinInt64, "\x005": 0, "\x1f5": 5, "\x7f5": 0, "007": 7,
	} {
		require.Equal(t, want, lenient.Int(text), "%q", text)
		require.Equal(t, want, lenient.Int([]byte(text)), "%q", text)
	}
}

func TestNatural(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "5": 5, "5x": 5, "007": 7, "18446744073709551615": -1} {
		n, ok := lenient.Natural([]byte(text))
		require.True(t, ok, "%q", text)
		require.Equal(t, want, n, "%q", text)
	}
	for _, text := range []string{"", "x", " 5", "+5", "-5"} {
		_, ok := lenient.Natural([]byte(text))
		require.False(t, ok, "%q", text)
	}
}

func TestFloat(t *testing.T) {
	for text, want := range map[string]float64{
		"": 0, "x": 0, "1.5": 1.5, "-1.5": -1.5, " +.5y": 0.5, "1e3": 1000, "1.5E-1": 0.15, "1e+2": 100, "5.": 5, "1e": 1,
		"0.12345678901234567": 0.1234567890123456, "inf": math.Inf(1), "-INFINITY": math.Inf(-1), "1e999": math.Inf(1),
		"123456789012345678": 123456789012345678, "0.00000000000000001e5": 0,
	} {
		require.Equal(t, want, lenient.Float([]byte(text)), "%q", text)
	}
	require.True(t, math.IsNaN(lenient.Float([]byte("nano"))))
}
