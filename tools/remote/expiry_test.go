package remote_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTTLAndTouch(t *testing.T) {
	clear(t)
	succeed(t, "", "set", "k", "value")
	require.Equal(t, "never\n", succeed(t, "", "ttl", "k"))
	require.Equal(t, `{"key":"k"}`+"\n", succeed(t, "", "ttl", "-json", "k"))

	require.Empty(t, succeed(t, "", "touch", "k", "100"))
	left, err := strconv.Atoi(strings.TrimSpace(succeed(t, "", "ttl", "k")))
	require.NoError(t, err)
	require.InDelta(t, 99, left, 2)
	require.Regexp(t, `^\{"key":"6B","ttl":\d+,"xt":\d{10}\}\n$`, succeed(t, "", "ttl", "-json", "-px", "k"))
	require.Equal(t, "value\n", succeed(t, "", "get", "k"))

	succeed(t, "", "touch", "k", "-4000000000")
	require.Equal(t, "value\t4000000000\n", succeed(t, "", "get", "-pt", "k"))
	succeed(t, "", "touch", "k", "never")
	require.Equal(t, "never\n", succeed(t, "", "ttl", "-sx", "6b"))
	succeed(t, "", "touch", "k", "7")
	succeed(t, "", "touch", "-sx", "6B")
	require.Equal(t, "never\n", succeed(t, "", "ttl", "k"))
}

func TestTouchOfAnEmptyValue(t *testing.T) {
	clear(t)
	succeed(t, "", "set", "k", "")
	succeed(t, "", "touch", "k", "100")
	require.NotEqual(t, "never\n", succeed(t, "", "ttl", "k"))
}

func TestTouchRefuses(t *testing.T) {
	clear(t)
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"none", "5"}, "DB::touch failed: :" + port + ": 3: logical inconsistency: DB: 7: no record"},
		{[]string{"k", "0"}, `must be "never", seconds from now`},
		{[]string{"k", "soon"}, `must be "never", seconds from now`},
		{[]string{"k", "1", "2"}, "too many arguments"},
	} {
		r := command(t, "", at("touch", row.args...)...)
		require.Equal(t, 1, r.exit, row.args)
		require.Contains(t, r.stderr, row.want, row.args)
	}
	r := command(t, "", at("ttl", "none")...)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "DB::check failed: :"+port+": 3: logical inconsistency: DB: 7: no record")
}
