package cli_test

import (
	"math"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"gotycoon/tools/cli"
)

// options of a command as the tests need them.
type options struct {
	flags *cli.Flags
	port  *int64
	tout  *time.Duration
	db    *string
	add   *bool
}

func define() options {
	f := cli.New("test")
	return options{
		flags: f,
		port:  f.Integer("port", 1978, "listen on this `port`"),
		tout:  f.Seconds("tout", 0, "give up after so many seconds"),
		db:    f.String("db", "", "`name` of the database"),
		add:   f.Bool("add", false, "only new records"),
	}
}

func TestOneDashOrTwo(t *testing.T) {
	for _, args := range [][]string{
		{"-port", "7"}, {"--port", "7"}, {"-port=7"}, {"--port=7"},
	} {
		o := define()
		require.NoError(t, o.flags.Parse(args), "%v", args)
		require.EqualValues(t, 7, *o.port, "%v", args)
		require.Empty(t, o.flags.Args(), "%v", args)
	}
}

func TestOptionsEndAtTheFirstArgument(t *testing.T) {
	for _, row := range []struct{ args, rest []string }{
		{[]string{"-add", "key", "-port", "7"}, []string{"key", "-port", "7"}},
		{[]string{"-add", "--", "-port", "7"}, []string{"-port", "7"}},
		{[]string{"-add", "-", "-port"}, []string{"-", "-port"}},
		{[]string{"-add", "key", "--", "-port"}, []string{"key", "--", "-port"}},
		{[]string{"-add", "", "-5"}, []string{"", "-5"}},
	} {
		o := define()
		require.NoError(t, o.flags.Parse(row.args), "%v", row.args)
		require.True(t, *o.add, "%v", row.args)
		require.Equal(t, row.rest, o.flags.Args(), "%v", row.args)
		require.EqualValues(t, 1978, *o.port, "%v", row.args)
	}
}

func TestValuesMayLookLikeOptions(t *testing.T) {
	o := define()
	require.NoError(t, o.flags.Parse([]string{"-db", "-add", "-port", "-5", "-db", "--", "x"}))
	require.Equal(t, "--", *o.db)
	require.EqualValues(t, -5, *o.port)
	require.False(t, *o.add)
	require.Equal(t, []string{"x"}, o.flags.Args())
}

func TestBadOptions(t *testing.T) {
	for _, args := range [][]string{{"-none"}, {"---add"}, {"---"}, {"-port"}, {"-port", "many"}, {"-port="}, {"-tout", "nan"}, {"-port", "9000p"}} {
		o := define()
		require.Error(t, o.flags.Parse(args), "%v", args)
	}
	for _, arg := range []string{"-h", "-help", "--help"} {
		require.ErrorIs(t, define().flags.Parse([]string{arg}), pflag.ErrHelp)
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "12": 12, "-12": -12, "+3": 3, "1.9": 1, "-1.9": -1, "1k": 1 << 10, "1K": 1 << 10, "2m": 2 << 20, "1g": 1 << 30,
		"1t": 1 << 40, "1p": 1 << 50, "1e": 1 << 60, "0.5k": 512, "-1.5k": -1536, "1e3": 1000,
		"1795229614577000006": 1795229614577000006, "9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
	} {
		var have int64
		require.NoError(t, cli.Int(&have).Set(text), text)
		require.Equal(t, want, have, text)
	}
	for _, text := range []string{"", "k", "x", "12x", "1kk", "9223372036854775808", "8e", "inf", "nan"} {
		var have int64
		require.Error(t, cli.Int(&have).Set(text), text)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "12": 12, "-1": -1, "12b": 12, "12 B": 12, "64m": 64 << 20, "64M": 64 << 20, "64 MB": 64 << 20, "64MiB": 64 << 20,
		"64 mib": 64 << 20, "2 GB": 2 << 30, "2gb": 2 << 30, "1.5 g": 3 << 29, "1t": 1 << 40, "3 kB": 3 << 10, "1e3": 1000, "1e": 1 << 60,
		"1 EB": 1 << 60, " 5k ": 5 << 10, "9223372036854775807": math.MaxInt64,
	} {
		var have int64
		require.NoError(t, cli.Size(&have).Set(text), text)
		require.Equal(t, want, have, text)
	}
	for _, text := range []string{"", "b", "k", "kb", "GB", "2 G B", "2 gbb", "2ib", "2 iB", "2 MiBs", "1 2k", "8e", "nan", "infb"} {
		have := int64(1)
		require.ErrorContains(t, cli.Size(&have).Set(text), "2 GB", text)
		require.EqualValues(t, 1, have, "a size that is refused changes nothing")
	}
}

func TestSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1": time.Second, "0.25": 250 * time.Millisecond, "1k": 1024 * time.Second, "1e12": 1 << 62, "-1e12": -1 << 62,
	} {
		o := define()
		require.NoError(t, o.flags.Parse([]string{"-tout", text}), text)
		require.Equal(t, want, *o.tout, text)
	}
}

func TestFlagUsages(t *testing.T) {
	o := define()
	o.flags.Bool("secret", false, "not for everybody")
	o.flags.Lookup("secret").Hidden = true
	require.Equal(t, "  -port port    listen on this port\n"+
		"  -tout number  give up after so many seconds\n"+
		"  -db name      name of the database\n"+
		"  -add          only new records\n", o.flags.FlagUsages())
}

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

// What is wrong with a command line is said in our words, with the option that is probably meant.
func TestMistakesAreExplained(t *testing.T) {
	for text, args := range map[string][]string{
		"there is no option -prot; did you mean -port?":                    {"-prot", "7"},
		"there is no option -nonsense":                                     {"--nonsense=3"},
		"-port needs a value":                                              {"-port"},
		"-port many: must be a number":                                     {"-port", "many"},
		"options stand before the first argument, not behind it: --port=7": {"key", "--port=7"},
		"there are too many arguments":                                     {"key", "-other"},
	} {
		_, err := define().flags.ParseArgs(args, 0, 0)
		require.EqualError(t, err, text)
	}
}

func TestDidYouMean(t *testing.T) {
	names := []string{"get", "getbulk", "remove", "set", "setbulk", "ttl"}
	for misspelt, want := range map[string]string{
		"gte": "; did you mean get?", "setbluk": "; did you mean setbulk?", "remvoe": "; did you mean remove?", "x": "", "nonsense": "", "delete": "",
	} {
		require.Equal(t, want, cli.DidYouMean(misspelt, "", names), misspelt)
	}
}
