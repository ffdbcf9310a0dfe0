package yrmconf_test

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/yrmconf"
)

func TestParse(t *testing.T) {
	have, err := yrmconf.Parse("x.conf", strings.NewReader(`# comment
counter.enable = true
	  # another

  counter.port=11215 # no comment behind a value
log.file	=	"/a b"
a = b = "c"
empty =
quotes = """x"""
one = "
`))
	require.NoError(t, err)
	require.Equal(t, []yrmconf.Setting{
		{"counter.enable", "true", 2},
		{"counter.port", "11215 # no comment behind a value", 5},
		{"log.file", "/a b", 6},
		{"a", `b = "c"`, 7},
		{"empty", "", 8},
		{"quotes", `""x""`, 9},
		{"one", `"`, 10},
	}, have)
}

func TestParseErrors(t *testing.T) {
	_, err := yrmconf.Parse("x.conf", strings.NewReader("a = 1\nnonsense\n"))
	require.EqualError(t, err, "x.conf:2: neither KEY = VALUE nor a comment")
	broken := errors.New("broken")
	_, err = yrmconf.Parse("x.conf", iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
	_, err = yrmconf.Parse("x.conf", strings.NewReader(strings.Repeat("x", 1<<17)))
	require.ErrorContains(t, err, "x.conf:1: reading")
}

// FuzzParse parses arbitrary text; what comes out must come out again after it was written down.
func FuzzParse(f *testing.F) {
	f.Add("a = 1\n# c\nb=\"x\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		settings, err := yrmconf.Parse("f", strings.NewReader(text))
		if err != nil {
			return
		}
		var again strings.Builder
		for _, s := range settings {
			require.NotContains(t, s.Key, "=")
			again.WriteString(s.Key + " = \"" + s.Value + "\"\n")
		}
		back, err := yrmconf.Parse("f", strings.NewReader(again.String()))
		require.NoError(t, err)
		require.Len(t, back, len(settings))
		for i := range back {
			require.Equal(t, settings[i].Key, back[i].Key)
			require.Equal(t, settings[i].Value, back[i].Value)
		}
	})
}
