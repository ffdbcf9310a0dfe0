package record

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAbsolute(t *testing.T) {
	const now = 1_800_000_000
	for _, c := range []struct {
		name string
		xt   XT
		want int64
	}{
		{"never", Never, MaxXT},
		{"zero is the current second", 0, now},
		{"positive is relative", 60, now + 60},
		{"negative is absolute", -4102444800, 4102444800},
		{"minus one is long ago", -1, 1},
		{"the last second before never", XT(MaxXT) - 1 - now, MaxXT - 1},
		{"never from now on", XT(MaxXT) - now, MaxXT},
		{"absolute beyond never", -XT(MaxXT) - 1, MaxXT},
		{"the least number", math.MinInt64, MaxXT},
		{"nearly never", math.MaxInt64 - 1, MaxXT},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, Absolute(c.xt, now)) })
	}
}

func TestExpired(t *testing.T) {
	require.False(t, Expired(100, 99))
	require.False(t, Expired(100, 100), "it lives in the second that the time names")
	require.True(t, Expired(100, 101))
	require.False(t, Expired(MaxXT, 1<<40-1))
}

func TestStoredValue(t *testing.T) {
	require.Equal(t, []byte{'k', 0xff, 0xff, 0xff, 0xff, 0xff}, AppendXT([]byte("k"), MaxXT))
	stored := append(AppendXT(nil, 0x0123456789), "value"...)
	require.Equal(t, "\x01\x23\x45\x67\x89value", string(stored))
	xt, value, ok := Split(stored)
	require.True(t, ok)
	require.Equal(t, int64(0x0123456789), xt)
	require.Equal(t, "value", string(value))
	_, value, ok = Split(stored[:5])
	require.True(t, ok, "an empty value")
	require.Empty(t, value)
	_, _, ok = Split(stored[:4])
	require.False(t, ok)
}
