package servicetest

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/access"
	"gotycoon/access/accesstest"
	"gotycoon/internal/browser"
	"gotycoon/services"
)

// Right is a call, and the status of its reply to clients that may only read or only write.
type Right struct {
	Path           string
	Reader, Writer int
}

// CheckRights requires calls to be answered by the rights of their clients. start starts the
// service of this name.
func CheckRights(t *testing.T, service string, start func(services.Options) (addr string), rights ...Right) {
	t.Helper()
	reader, writer := "reader-0123456789", "writer-0123456789"
	lines := []string{"allow reader read", "allow writer write service=" + service}
	for _, token := range []string{reader, writer} {
		digest, err := access.HashToken([]byte(token))
		require.NoError(t, err)
		lines = append(lines, "token "+token[:6]+" "+digest)
	}
	c := NewClient(t, start(services.Options{Access: accesstest.Guard(t, lines...)}))
	for _, row := range rights {
		for _, body := range []string{"", "a body"} { // which is no further request
			r := c.Ask("POST", row.Path, "", body)
			require.Equal(t, 401, r.StatusCode, row.Path)
			require.Equal(t, access.Challenge, r.Header.Get("WWW-Authenticate"))
			require.Contains(t, r.Status, "access denied: this needs a user")
			require.Equal(t, row.Reader, c.Ask("POST", row.Path, reader, body).StatusCode, row.Path)
			require.Equal(t, row.Writer, c.Ask("POST", row.Path, writer, body).StatusCode, row.Path)
			require.Equal(t, 401, c.Ask("POST", row.Path, "unknown", body).StatusCode, row.Path)
		}
	}
}

// CheckPages requires a call to be refused when a page of another site makes it, also with what the
// page puts into a body.
func CheckPages(t *testing.T, target string, start func(services.Options) (addr string)) {
	t.Helper()
	pages, err := browser.New(nil)
	require.NoError(t, err)
	addr := start(services.Options{Pages: pages})
	for headers, want := range map[string]int{
		"Host: evil.example\r\nOrigin: http://evil.example":              403,
		"Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site":                  403,
		"Host: evil.example\r\nAccept-Language: ":                        403,
		"Host: 127.0.0.1\r\nUser-Agent: Mozilla/5.0":                     403, // does not say which page
		"Host: db1.internal\r\nUser-Agent: curl/8":                       200,
		"Host: 127.0.0.1\r\nSec-Fetch-Site: none\r\nUser-Agent: Mozilla": 200,
	} {
		c := NewClient(t, addr)
		smuggled := "GET /fetch HTTP/1.1\r\n\r\n"
		_, err := fmt.Fprintf(c.Socket, "POST %s HTTP/1.1\r\n%s\r\nContent-Length: %d\r\n\r\n%s", target, headers, len(smuggled), smuggled)
		require.NoError(t, err)
		r, err := http.ReadResponse(c.Reader, nil)
		require.NoError(t, err)
		require.Equal(t, want, r.StatusCode, "%s %q", target, headers)
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		if want == 403 {
			require.Contains(t, string(text), "a browser")
			_, err = c.Reader.ReadByte()
			require.Error(t, err, "the connection has ended")
		}
	}
}
