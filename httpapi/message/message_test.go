package message

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseChunkSize(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "zz": 0, "A;x=y": 10, "0x1f": 31, "0": 0, " 10": 16, "10000000": maxBody, "10000001": maxBody + 1,
		"ffffffffffffffffffff": maxBody + 1,
	} {
		require.Equal(t, want, parseChunkSize([]byte(text)), text)
	}
}

func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for _, tc := range []struct {
		name, in string
		want     []string
		cut      bool
	}{
		{"both line ends", "a\r\nb\n\r\n", []string{"a", "b", ""}, false},
		{"no end yet", "a\r\nb", []string{"a"}, false},
		{"carriage returns anywhere", "\ra\rb\r\r\nc\n", []string{"ab", "c"}, false},
		{"NUL hides", "a\x00b\r\nc\n", []string{"a", "c"}, false},
		{"just short enough", long[1:] + "\r\nc\n", []string{long[1:], "c"}, false},
		{"the longest leaves its end behind", long + "\r\nc\n", []string{long, "", "c"}, true},
		{"longer is cut", long + "yz\r\n", []string{long, "yz"}, true},
		{"cut without an end", long + "y", []string{long}, true},
		{"carriage returns do not count", long[:10] + "\r\r" + long[11:] + "\nc\n", []string{long[1:], "c"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, step := range []int{1, 7, 1 << 20} {
				got, cut := takeAll([]byte(tc.in), step)
				require.Equal(t, tc.want, got)
				require.Equal(t, tc.cut, cut)
			}
		})
	}
}

// takeAll reads lines while the bytes arrive step by step.
func takeAll(in []byte, step int) (lines []string, cut bool) {
	var l lineReader
	for n := 0; n < len(in); {
		n = min(n+step, len(in))
		for {
			line, ok := l.take(in[:n])
			if !ok {
				break
			}
			lines = append(lines, string(in[line.from:line.to]))
		}
	}
	return lines, l.cut
}
