package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHTTPDate(t *testing.T) {
	require.Equal(t, "Fri, 01 Jan 2100 00:00:00 GMT", string(appendHTTPDate(nil, 4102444800)))
	require.Equal(t, "Mon, 20 Feb 36812 00:36:14 GMT", string(appendHTTPDate(nil, 1<<40-2)))
	var d dateCache
	now := time.Unix(4102444800, 0)
	first := d.text(now)
	require.Equal(t, "Fri, 01 Jan 2100 00:00:00 GMT", string(first))
	require.Same(t, &first[0], &d.text(now.Add(999 * time.Millisecond))[0], "one text per second")
	require.Equal(t, "Fri, 01 Jan 2100 00:00:01 GMT", string(d.text(now.Add(time.Second))))
}

func TestSplitPath(t *testing.T) {
	for path, want := range map[string][2]string{
		"/": {"", ""}, "/k": {"", "k"}, "k": {"", "k"}, "/0/k": {"0", "k"}, "/0/": {"0", ""}, "/foo/": {"foo", ""},
		"//k": {"", "k"}, "///k": {"", "k"}, "/0//k": {"0", "k"}, "/0/x/y": {"0", "x/y"}, "/a%2Fb": {"", "a%2Fb"},
		"rpc/void": {"rpc", "void"}, "http://h/rpc/void": {"http:", "h/rpc/void"},
	} {
		expr, key := splitPath([]byte(path))
		require.Equal(t, want, [2]string{string(expr), string(key)}, path)
	}
}

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

func TestQuote(t *testing.T) {
	require.Equal(t, "\"a b;\\\"\\\\\\$\\`\\!'\"", quote("a b;\"\\$`!'"))
}

func TestAppendBlankless(t *testing.T) {
	require.Equal(t, "a b c", string(appendBlankless(nil, []byte(" \ta \x01 b\x7f\tc "))))
}

func TestProceduresAreSorted(t *testing.T) {
	for i := 1; i < len(procedures); i++ {
		require.Less(t, procedures[i-1].name, procedures[i].name)
	}
}
