package sequence

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/access"
)

// guard is one whose access file has these lines.
func guard(t *testing.T, lines ...string) *access.Guard {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	g, err := access.Open(access.Options{Path: path})
	require.NoError(t, err)
	t.Cleanup(g.Close)
	return g
}

// ask makes a call with a token, and returns the whole reply.
func (c *client) ask(method, path, token, body string) *http.Response {
	c.t.Helper()
	header := ""
	if token != "" {
		header = "authorization: Bearer " + token + "\r\n"
	}
	_, err := fmt.Fprintf(c.socket, "%s %s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s", method, path, header, len(body), body)
	require.NoError(c.t, err)
	r, err := http.ReadResponse(c.reader, nil)
	require.NoError(c.t, err)
	var text strings.Builder
	_, err = bufio.NewReader(r.Body).WriteTo(&text)
	require.NoError(c.t, err)
	r.Status = text.String()
	return r
}

func TestRights(t *testing.T) {
	reader, writer := "reader-0123456789", "writer-0123456789"
	lines := []string{"allow reader read", "allow writer write service=sequence", "allow writer write service=quota"}
	for _, token := range []string{reader, writer} {
		digest, err := access.HashToken([]byte(token))
		require.NoError(t, err)
		lines = append(lines, "token "+token[:6]+" "+digest)
	}
	g := guard(t, lines...)
	sequences := newClient(t, startSequence(t, SequenceOptions{Access: g}))
	quotas := newClient(t, startQuota(t, QuotaOptions{Access: g, Limit: 100}))
	for _, row := range []struct {
		c      *client
		path   string
		reader int
		writer int
	}{
		{sequences, "/fetch", 403, 200},
		{sequences, "/explain?sequence=aR2011o_cWG00002", 200, 403},
		{quotas, "/query", 200, 403},
		{quotas, "/apply?amt=1", 403, 200},
		{quotas, "/increase?amt=1", 403, 200},
		{quotas, "/nonsense", 403, 404},
	} {
		for _, body := range []string{"", "a body"} { // which is no further request
			r := row.c.ask("POST", row.path, "", body)
			require.Equal(t, 401, r.StatusCode, row.path)
			require.Equal(t, access.Challenge, r.Header.Get("WWW-Authenticate"))
			require.Contains(t, r.Status, "access denied: this needs a user")
			require.Equal(t, row.reader, row.c.ask("POST", row.path, reader, body).StatusCode, row.path)
			require.Equal(t, row.writer, row.c.ask("POST", row.path, writer, body).StatusCode, row.path)
			require.Equal(t, 401, row.c.ask("POST", row.path, "unknown", body).StatusCode, row.path)
		}
	}
}
