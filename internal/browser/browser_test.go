package browser_test

import (
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/browser"
)

// headers are names and values in turn.
func headers(t *testing.T, pairs ...string) *browser.Headers {
	t.Helper()
	h := &browser.Headers{}
	for i := 0; i < len(pairs); i += 2 {
		f, ok := browser.FieldNamed([]byte(pairs[i]))
		require.True(t, ok, pairs[i])
		h[f] = []byte(pairs[i+1])
	}
	return h
}

const mozilla = "Mozilla/5.0 (X11; Linux x86_64) Chrome/120"

func TestCheck(t *testing.T) {
	own, err := os.Hostname()
	require.NoError(t, err)
	p, err := browser.New([]string{"kt.internal", "App.Internal."})
	require.NoError(t, err)
	reads, changes, proven := browser.About{}, browser.About{Changes: true}, browser.About{Changes: true, Proven: true}
	for _, row := range []struct {
		about browser.About
		want  string // part of the reason; "": passes
		pairs []string
	}{
		// Clients: any name will do.
		{changes, "", nil},
		{changes, "", []string{"Host", "db1.example:1978"}},
		{changes, "", []string{"Host", "db1.example", "User-Agent", "curl/8.5.0"}},
		{changes, "", []string{"Host", "db1.example", "User-Agent", "node", "Accept-Language", "*", "Sec-Fetch-Mode", "cors"}},
		{changes, "", []string{"Host", "a b"}},
		{changes, "", []string{"Host", "db1.example", "User-Agent", "Mozilla/5.0 (Windows NT 10.0; de-DE) PowerShell/7.4.1"}},
		{reads, "the host \"evil.example\"", []string{"Host", "evil.example", "User-Agent", "Mozilla/5.0 PowerShell/7", "Accept-Language", "de"}},

		// Pages of another site.
		{reads, "a page of \"evil.example\"", []string{"Host", "127.0.0.1:1978", "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}},
		{reads, "a page of \"another site\"", []string{"Host", "127.0.0.1:1978", "Sec-Fetch-Site", "cross-site"}},
		{reads, "a page of \"127.0.0.1\"", []string{"Host", "127.0.0.1:1978", "Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:3000"}},
		{reads, "a page of \"evil.example\"", []string{"Host", "10.0.0.5:1978", "Origin", "http://evil.example"}},
		{reads, "a page of \"another site\"", []string{"Host", "10.0.0.5:1978", "Origin", "null"}},
		{reads, "a page of \"evil.example\"", []string{"Host", "10.0.0.5:1978", "Referer", "http://evil.example/x?y"}},
		{proven, "a page of \"evil.example\"", []string{"Host", "10.0.0.5:1978", "Origin", "http://evil.example"}},
		{changes, "does not say which page", []string{"Host", "10.0.0.5:1978", "User-Agent", mozilla}},
		{proven, "does not say which page", []string{"Host", "10.0.0.5:1978", "Accept-Language", "de"}},
		{reads, "", []string{"Host", "10.0.0.5:1978", "User-Agent", mozilla, "Accept-Language", "de"}},
		{reads, "a page of", []string{"Origin", "http://evil.example"}},

		// Names that lead here without being ours.
		{reads, "the host \"evil.example\"", []string{"Host", "evil.example:1978", "User-Agent", mozilla}},
		{reads, "the host \"evil.example\"", []string{"Host", "evil.example:1978", "User-Agent", "curl/8", "Accept-Language", ""}},
		{reads, "the host \"evil.example\"", []string{"Host", "evil.example:1978", "Origin", "http://evil.example:1978"}},
		{reads, "the host \"evil.example\"", []string{"Host", "evil.example:1978", "Referer", "http://evil.example:1978/"}},
		{reads, "the host \"localhost.evil.example\"", []string{"Host", "localhost.evil.example", "Sec-Fetch-Site", "same-origin"}},
		{proven, "", []string{"Host", "db1.example", "Sec-Fetch-Site", "same-origin"}},

		// The user, and pages that are ours.
		{changes, "", []string{"Host", "127.0.0.1:1978", "Sec-Fetch-Site", "none", "User-Agent", mozilla}},
		{changes, "", []string{"Host", "127.0.0.1:1978", "Sec-Fetch-Site", "same-origin", "User-Agent", mozilla}},
		{changes, "", []string{"Host", "10.0.0.5:1978", "Origin", "http://10.0.0.5:1978"}},
		{changes, "", []string{"Host", "[::1]:1978", "Origin", "http://[::1]:1978"}},
		{changes, "", []string{"Host", "x.localhost", "Origin", "http://X.localhost"}},
		{changes, "", []string{"Host", own + ":1978", "Origin", "http://" + own + ":1978"}},
		{changes, "", []string{"Host", "KT.internal.:1978", "Origin", "http://kt.internal.:1978"}},
		{changes, "", []string{"Host", "10.0.0.5", "Sec-Fetch-Site", "cross-site", "Origin", "https://app.internal:8443"}},
	} {
		err := p.Check(headers(t, row.pairs...), row.about)
		if row.want == "" {
			require.NoError(t, err, row.pairs)
			continue
		}
		require.ErrorContains(t, err, row.want, row.pairs)
		var refused *browser.Refused
		require.ErrorAs(t, err, &refused)
		require.Equal(t, http.StatusForbidden, refused.Status())
	}
	all, err := browser.New([]string{"*"})
	require.NoError(t, err)
	require.NoError(t, all.Check(headers(t, "Host", "evil.example", "Origin", "http://x.example"), changes))
}

func TestNames(t *testing.T) {
	for _, name := range []string{"", "http://kt.internal", "kt.internal:1978", "a b", "*.internal"} {
		_, err := browser.New([]string{name})
		require.ErrorContains(t, err, "no host name", name)
	}
	_, err := browser.New([]string{"::1", "kt"})
	require.NoError(t, err)
	_, ok := browser.FieldNamed([]byte("X-Host"))
	require.False(t, ok)
}

func TestHeadersOf(t *testing.T) {
	r, err := http.NewRequest(http.MethodGet, "http://kt.internal:1978/", nil)
	require.NoError(t, err)
	require.False(t, browser.HeadersOf(r).Marked())
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	h := browser.HeadersOf(r)
	require.True(t, h.Marked())
	require.Equal(t, "kt.internal:1978", string(h[browser.Host]))
}

func TestIsRequestLine(t *testing.T) {
	for line, want := range map[string]bool{
		"GET / HTTP/1.1": true, "POST /x y HTTP/1.1\r": true, "OPTIONS * HTTP/1.0": true,
		"get HTTP/1.1": false, "get / HTTP/1.1": false, "GET /": false, "POST HTTP/1.1": false, "lock GET / HTTP/1.1": false, "": false,
		"\x16\x03\x01\x02\x00\x01\x00": true, "\x16": false,
	} {
		require.Equal(t, want, browser.IsRequestLine([]byte(line)), line)
	}
}

func TestIsRequestStart(t *testing.T) {
	for line, want := range map[string]bool{
		"POST /aaaa": true, "GET ": true, "GET": false, "get aaaa": false, "lock aaaa": false, "\x16\x03\x01": true, "": false,
	} {
		require.Equal(t, want, browser.IsRequestStart([]byte(line)), line)
	}
}
