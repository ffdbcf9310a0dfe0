package httpapi

import (
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

func TestQuote(t *testing.T) {
	require.Equal(t, "\"a b;\\\"\\\\\\$\\`\\!'\"", quote("a b;\"\\$`!'"))
}

func TestAppendBlankless(t *testing.T) {
	require.Equal(t, "a b c", string(appendBlankless(nil, []byte(" \ta \x01 b\x7f\tc "))))
}
