package expr

import (
	"gotycoon/db/dberr"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseExpr(t *testing.T) {
	for _, c := range []struct {
		expr, path, name string
		kind             Kind
	}{
		{":", ":", ":", Stash},
		{"-", "-", "-", ProtoHash},
		{"+", "+", "+", ProtoTree},
		{"*", "*", "*", Cache},
		{"%", "%", "%", Grass},
		{"a/b/%", "a/b/%", "%", Grass},
		{"sub/casket.kch#bnum=1000", "sub/casket.kch", "casket.kch", FileHash},
		{"words.kct.kch", "words.kct.kch", "words.kct.kch", FileHash},
		{"x.kct", "x.kct", "x.kct", FileTree},
		{"x.kcd", "x.kcd", "x.kcd", DirHash},
		{"x.kcf", "x.kcf", "x.kcf", DirTree},
		{"x.csv", "x.csv", "x.csv", Text},
		{"x.kcph", "x.kcph", "x.kcph", ProtoHash},
		{"x.ptdb", "x.ptdb", "x.ptdb", ProtoTree},
		{"x.sdb", "x.sdb", "x.sdb", Stash},
		{"x.cdb", "x.cdb", "x.cdb", Cache},
		{"x.gdb", "x.gdb", "x.gdb", Grass},
		{".kch", ".kch", ".kch", FileHash},
		{"users#type=%", "users", "users", Grass},
		{"x.kch#type=forest", "x.kch", "x.kch", DirTree},
		{"x.kch#type=nothing", "x.kch", "x.kch", FileHash},
		{"x.kch#type=kct=kcd", "x.kch", "x.kch", FileTree},
		{"x#type=kct#type=tdb#type=for", "x", "x", DirTree},
		{":#bnum=100#", ":", ":", Stash},
		{"#type=:", "", "", Stash},
	} {
		t.Run(c.expr, func(t *testing.T) {
			e, err := Parse(c.expr)
			require.NoError(t, err)
			require.Equal(t, c.expr, e.Raw)
			require.Equal(t, c.path, e.Path)
			require.Equal(t, c.name, e.Name)
			require.Equal(t, c.kind, e.Kind)
		})
	}
}

func TestParseExprWithoutAKind(t *testing.T) {
	for _, expr := range []string{"", "kch", "x", "x.KCH", "dir.kch/", "dir.kch/x", "::", "x#type=tsv", "x#kch", "x.kch.bak", "x."} {
		_, err := Parse(expr)
		require.ErrorIs(t, err, dberr.ErrUnknownType, expr)
	}
	_, err := Parse("x")
	require.EqualError(t, err, "2: invalid operation: unknown database type")
}

func TestParamsOfAnExpr(t *testing.T) {
	none := newParams()
	for _, c := range []struct {
		expr string
		want func(p *Params)
	}{
		{"%", func(*Params) {}},
		{"%#unknown=1#bnum#=5#", func(*Params) {}},
		{"%#bnum=2k", func(p *Params) { p.BNum = 2048 }},
		{"%#buckets=1#bnum=3", func(p *Params) { p.BNum = 3 }},
		{"*#capcnt=1m#capsize=2g", func(p *Params) { p.CapCnt, p.CapSiz = 1<<20, 2<<30 }},
		{"x.kch#opts=s#options=xlc", func(p *Params) { p.Opts = OptSmall | OptLinear | OptCompress }},
		{"x.kct#psiz=1#cache=2#apow=0#fbp=4#map=5#defrag=6",
			func(p *Params) { p.PSiz, p.PCCap, p.Apow, p.FPow, p.MSiz, p.DFUnit = 1, 2, 0, 4, 5, 6 }},
		{"%#rcomp=dec", func(p *Params) { p.RComp = Decimal }},
		{"%#comparator=decimaldesc#rcomp=what", func(p *Params) { p.RComp = DecimalDesc }},
		{"%#rcomp=lexdesc", func(p *Params) { p.RComp = LexicalDesc }},
		{"%#rcomp=lexdesc#rcomp=lex", func(*Params) {}},
		{"x.kch#rcomp=dec", func(*Params) {}},
		{"+#rcomp=dec", func(*Params) {}},
		{":#ktopts=p", func(p *Params) { p.Persistent = true }},
		{":#ktoptions=xpx#ktopts=", func(p *Params) { p.Persistent = true }},
		{":#ktopts=P", func(*Params) {}},
		{":#ktcapcnt=10#ktcapsize=560k", func(p *Params) { p.KTCapCnt, p.KTCapSiz = 10, 573440 }},
		{":#ktcap_count=0", func(p *Params) { p.KTCapCnt = 0 }},
		{"x.kch#zcomp=arc#pass=secret", func(p *Params) { p.ZComp, p.ZKey = "arc", "secret" }},
		{":#log=-#logkinds=debug#lpx=a:#mtrg=+#mtpx=b:",
			func(p *Params) { p.Log, p.LogKinds, p.LogPx, p.MTrg, p.MTrgPx = "-", "debug", "a:", "+", "b:" }},
	} {
		t.Run(c.expr, func(t *testing.T) {
			e, err := Parse(c.expr)
			require.NoError(t, err)
			want := none
			c.want(&want)
			require.Equal(t, want, e.Params)
		})
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"": 0, "abc": 0, "12": 12, " 12": 12, "\t+12": 12, "-12": -12, "- 12": 0, "12x": 12,
		"1k": 1 << 10, "1K": 1 << 10, "1 k": 1 << 10, "3m": 3 << 20, "1g": 1 << 30, "1t": 1 << 40, "1P": 1 << 50, "1e": 1 << 60,
		"1.5k": 1536, "0.5": 0, ".5k": 512, "1.5": 1, "-1.5k": -1536, "1..5k": 1, "1.5.5k": 1,
		"9223372036854775807": math.MaxInt64, "9223372036854775808": math.MaxInt64,
		"99999999999999999999999999": math.MaxInt64, "8e": math.MaxInt64, "7.999e": 7<<60 + 0x0ffbe76c8b439580,
		"-99999999999999999999": -math.MaxInt64,
	} {
		require.Equal(t, want, parseSize(s), s)
	}
}

func TestKinds(t *testing.T) {
	ordered, onDisk := "", ""
	for _, k := range []Kind{ProtoHash, ProtoTree, Stash, Cache, Grass, FileHash, FileTree, DirHash, DirTree, Text} {
		if k.Ordered() {
			ordered += string(rune(k.TypeCode()))
		}
		if k.OnDisk() {
			onDisk += string(rune(k.TypeCode()))
		}
	}
	require.Equal(t, "\x11\x21\x31\x41", ordered)
	require.Equal(t, "\x30\x31\x40\x41\x50", onDisk)
}

func FuzzParseExpr(f *testing.F) {
	for _, seed := range []string{":", "a/b.kct#bnum=1.5k#rcomp=dec", "x#type=%#ktopts=p", "###", "=#=.kch"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := Parse(s)
		if err != nil {
			require.ErrorIs(t, err, dberr.ErrUnknownType)
			require.Zero(t, e)
			return
		}
		require.True(t, strings.HasPrefix(s, e.Path))
		require.True(t, strings.HasSuffix(e.Path, e.Name))
		require.NotContains(t, e.Name, "/")
		rows := StatusRows(e)
		require.Equal(t, e.Path, rows["path"])
		require.GreaterOrEqual(t, BaseSize(e), int64(0))
	})
}
