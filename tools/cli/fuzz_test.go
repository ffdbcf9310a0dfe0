package cli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"gotycoon/tools/cli"
)

// FuzzParse parses a command line, its arguments on lines of their own, with one dash and with two.
// Both must mean the same, and what follows the options must come back as it is.
func FuzzParse(f *testing.F) {
	for _, args := range []string{
		"-port\n7\nkey", "--port=7\n-add\nkey\n-port\n8", "-db\n-add\n--\n-x", "-h", "--help", "-\n-add", "--\n--", "-port", "-tout\n1e99\n",
		"-add=no\n\n-5", "---port\n1", "---\n-add", "-=\n-", "-db=\n-db", "-none\nx", "-port\n0x1p4", "-help=1", "-add\n-add=x",
	} {
		f.Add(args)
	}
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\n")
		before := slices.Clone(args)
		one, two := define(), define()
		err := one.flags.Parse(args)
		require.Equal(t, before, args, "the arguments are the caller's")
		errTwo := two.flags.Parse(twoDashes(args))
		require.Equal(t, err == nil, errTwo == nil, "%v, %v", err, errTwo)
		if err != nil {
			return
		}
		require.Equal(t, values(one), values(two))
		rest := one.flags.Args()
		require.True(t, slices.Equal(rest, args[len(args)-len(rest):]), "%q", rest)
		require.True(t, endsOptions(args, len(rest)), "%q behind %q", rest, args)
	})
}

// twoDashes gives every option two dashes. Values stay what they are.
func twoDashes(args []string) []string {
	out := slices.Clone(args)
	for i := 0; i < len(out) && strings.HasPrefix(out[i], "-") && out[i] != "-" && out[i] != "--"; i++ {
		bare := strings.TrimPrefix(out[i][1:], "-")
		name, _, joined := strings.Cut(bare, "=")
		out[i] = "--" + bare
		if slices.Contains([]string{"port", "tout", "db"}, name) && !joined {
			i++ // its value stays what it is
		}
	}
	return out
}

// values are what the options were set to.
func values(o options) []any {
	changed := []string{}
	o.flags.Visit(func(f *pflag.Flag) { changed = append(changed, f.Name) })
	return []any{*o.port, *o.tout, *o.db, *o.add, changed, o.flags.Args()}
}

// endsOptions reports whether the last n arguments can be what follows the options: they begin with
// an argument that is none, or stand behind "--".
func endsOptions(args []string, n int) bool {
	at := len(args) - n
	return n == 0 || at > 0 && args[at-1] == "--" || !strings.HasPrefix(args[at], "-") || args[at] == "-"
}

// FuzzInt compares whole numbers with and without a unit.
func FuzzInt(f *testing.F) {
	for _, text := range []string{"0", "-12", "1.9", "2k", "0.5M", "1e3", "1e", "9223372036854775807", "-9223372036854775808", "8e", "inf", "k", "0x1p4", "1_0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const untouched = 42
		n, kilo := int64(untouched), int64(untouched)
		err := cli.Int(&n).Set(text)
		if err != nil {
			require.EqualValues(t, untouched, n, "a refused number changes nothing")
			return
		}
		if strings.ContainsAny(strings.ToLower(text[len(text)-1:]), "kmgtpe") || n != int64(float64(n)) || strings.Contains(text, ".") {
			return
		}
		if err := cli.Int(&kilo).Set(text + "k"); err == nil && -1<<40 < n && n < 1<<40 && !strings.ContainsAny(text, "eEpP") {
			require.Equal(t, n*1024, kilo, "%q", text)
		}
	})
}
