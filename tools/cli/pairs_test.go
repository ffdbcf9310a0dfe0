package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/tools/cli"
)

func TestPairs(t *testing.T) {
	f := cli.New("x")
	p := f.Pairs("ah", "add a header")
	other := f.String("body", "", "file")
	require.NoError(t, f.Parse([]string{"-ah", "a", "-b", "--ah", "c", "", "-body", "x", "url", "-ah"}))
	require.Equal(t, [][2]string{{"a", "-b"}, {"c", ""}}, *p)
	require.Equal(t, "x", *other)
	require.Equal(t, []string{"url", "-ah"}, f.Args())
	for _, args := range [][]string{{"-ah"}, {"-ah", "a"}, {"-ah=a"}} {
		require.Error(t, f.Parse(args), args)
	}
}
