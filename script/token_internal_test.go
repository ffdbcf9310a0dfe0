package script

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tokens as a grammar, but for long brackets and what is not closed.
var tokenGrammar = regexp.MustCompile(`(?s)^(?:[ \t\r\n\v\f]+|--[^\r\n]*|[A-Za-z_]\w*|\.?[0-9][0-9.]*(?:[eE][+-]?)?\w*|` +
	`"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\.{2,3}|::|[=~<>]=|.)`)

func FuzzNextToken(f *testing.F) {
	for _, text := range []string{" \n x", "--x\ny", "--[[x]]y", "--[=x\n", "[[x]]y", "[==[x]]]=]]==]y", "[=", "[=[", "[1]", "_a9.b", "3x", ".5e-3.2",
		"0x1p+4", "1e)", "1e+5+", "1..2", "...", "..", ".", "::", ":", "==", "=", "~=", "~", "<=", ">", `"a\"b"c`, `"a`, `'\`, "'\\'", `'"'x`, "é", "\xff", ";"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" {
			return
		}
		token := nextToken(text)
		require.NotEmpty(t, token)
		require.True(t, strings.HasPrefix(text, token))
		long := regexp.MustCompile(`^(?:--)?\[(=*)\[`).FindStringSubmatch(text)
		switch {
		case long != nil:
			end := strings.Index(text, "]"+long[1]+"]")
			if end < 0 {
				require.Equal(t, text, token, "it is not closed")
				return
			}
			require.Equal(t, text[:end+len(long[1])+2], token)
		case text[0] >= 0x80:
			require.Len(t, token, 1, "a byte that no token begins with")
		default:
			want := tokenGrammar.FindString(text)
			if want == `"` || want == "'" {
				want = text // it is not closed
			}
			require.Equal(t, want, token)
		}
	})
}
