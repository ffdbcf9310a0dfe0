package script_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/script"
)

// Nothing can stop the parser within a call, so a chunk that is too deep is refused before the parser
// sees it: in time and memory that grow with its size only.
func TestChunksThatAreTooDeepAreRefusedAtOnce(t *testing.T) {
	for _, c := range []struct{ name, head, again, tail string }{
		{"concatenations", "x=", "a..", "a"},
		{"powers", "x=", "2^", "2"},
		{"parentheses", "x=", "(", ""},
		{"tables", "x=", "{", ""},
		{"indexes", "x=a", "[a", ""},
		{"minus", "x=", "- ", "1"},
		{"not", "x=", "not ", "1"},
		{"functions", "", "function f() ", ""},
		{"blocks", "", "do ", ""},
		{"loops", "", "repeat ", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := start(t, fmt.Sprintf(`function f(i, o) local g, e = loadstring(%q .. string.rep(%q, 300000) .. %q) o.error = e return __kyototycoon__.RVSUCCESS end`,
				c.head, c.again, c.tail), func(o *script.Options) { o.Time = 30 * time.Second })
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, out := h.call("f")
			runtime.ReadMemStats(&after)
			require.Contains(t, fmt.Sprint(out), "too many syntax levels")
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200<<20))
		})
	}
}

// Behind a malformed number the parser sees other tokens than tooDeep, and would go deep unnoticed.
func TestMalformedNumbersAreRefusedAtOnce(t *testing.T) {
	h := start(t, `function f(i, o) local g, e = loadstring(i.head .. string.rep(i.again, 300000)) o.error = e return __kyototycoon__.RVSUCCESS end`,
		func(o *script.Options) { o.Time = 30 * time.Second })
	for _, c := range []struct{ head, again, number string }{
		{`x=1e"+`, "(", "1e"}, {"x=1e", "--(", "1e-"}, {"x=1e---", "(", "1e-"}, {"x=1..2", "(", "1..2"}, {"x=0x", "(", "0x"},
		{"", "while 1do ", "1do"}, {"", "if 1then ", "1then"}, {"x=1", "+(1e)", "1e"}, {"x=", "{1e},", "1e"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, out := h.call("f", "head", c.head, "again", c.again)
		runtime.ReadMemStats(&after)
		require.Contains(t, fmt.Sprint(out), "malformed number near '"+c.number+"'", c.head+c.again)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200<<20), c.head+c.again)
	}
}

// What is long but not deep is no concern of the look at the tokens.
func TestLongChunksAreNotDeep(t *testing.T) {
	for name, chunk := range map[string]string{
		"additions":  "return 1" + strings.Repeat("-1", 4000),
		"statements": strings.Repeat("x = -1 y = 'a'..'b' f(-1) ", 6000),
		"lists":      "return {" + strings.Repeat("-1,", 20_000) + "}",
		"branches":   "if a then " + strings.Repeat("elseif -a == b then ", 100) + "end",
		"conditions": "return a" + strings.Repeat(" or -a..b < c", 100),
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, fmt.Sprintf(`function f(i, o) local g, e = loadstring(%q) o.error = e return __kyototycoon__.RVSUCCESS end`, chunk))
			_, out := h.call("f")
			require.NotContains(t, fmt.Sprint(out), "too many syntax levels")
		})
	}
}
