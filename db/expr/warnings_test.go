package expr_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/expr"
)

func TestWhatHasNoEffectIsTold(t *testing.T) {
	for text, want := range map[string]string{
		"a.kct":                                "",
		"a.kct#ktopts=p#ktcapsiz=2 GB":         "",
		"*#capcnt=10k#capsize=64m#bnum=1m":     "",
		"a.kct#opts=lc#rcomp=decdesc#lww=1":    "",
		":#":                                   "",
		"a.kct#bnum= 2 KiB#psiz=-1#msiz=1.5gb": "",
		"a.kct#pccap=1z":                       `#pccap=1z: "z" is no unit, and has no effect: k, m, g, t, p and e are units`,
		"a.kct#ktcapsiz=1e3":                   `#ktcapsiz=1e3: what follows the unit e has no effect: "3"`,
		"a.kct#bnum=5 apples":                  `#bnum=5 apples: "apples" is no unit`,
		"a.kct#capsize=1g":                     "#capsize=1g: only a cache (*) keeps within it; ktcapcnt and ktcapsiz",
		"a.kct#ktcapsize=many":                 "#ktcapsize=many: is no number, and counts as 0",
		"a.kct#ktcapsizes=1g":                  "#ktcapsizes=1g: there is no such parameter. Those with an effect are ktopts, ",
		"a.kct#ktopts":                         "#ktopts has no value, and no effect: write #ktopts=VALUE",
		"a.kct#ktopts=x":                       `#ktopts=x: of the letters only "p" mean something`,
		"a.kct#opts=lz":                        `#opts=lz: of the letters only "slc" mean something`,
		"a.kct#rcomp=up":                       "#rcomp=up: there is no such order",
		"a.kct#lww=yes":                        "#lww=yes: is true or false",
		"a.kct#type=nothing":                   "#type=nothing: there is no such type",
		"a.kct#bnum=1=2":                       `#bnum: what follows the second = has no effect: "2"`,
	} {
		have := strings.Join(expr.Warnings(text), "\n")
		require.Equal(t, want == "", have == "", "%s: %s", text, have)
		require.Contains(t, have, want, text)
	}
	require.Empty(t, expr.Warnings("a.unknown#x=1"), "the name is an error anyhow")
}
