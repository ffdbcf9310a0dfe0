package sequence

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/browser"
)

// A page of another site takes no numbers and no amounts, also with what it puts into a body.
func TestPagesOfOtherSites(t *testing.T) {
	pages, err := browser.New(nil)
	require.NoError(t, err)
	sequence := startSequence(t, SequenceOptions{Limits: Limits{Pages: pages}})
	quota := startQuota(t, QuotaOptions{Limit: 100, Limits: Limits{Pages: pages}})
	for headers, want := range map[string]int{
		"Host: evil.example\r\nOrigin: http://evil.example":              403,
		"Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site":                  403,
		"Host: evil.example\r\nAccept-Language: ":                        403,
		"Host: 127.0.0.1\r\nUser-Agent: Mozilla/5.0":                     403, // does not say which page
		"Host: db1.internal\r\nUser-Agent: curl/8":                       200,
		"Host: 127.0.0.1\r\nSec-Fetch-Site: none\r\nUser-Agent: Mozilla": 200,
	} {
		for target, addr := range map[string]string{"/fetch": sequence, "/apply?amt=1": quota} {
			c := newClient(t, addr)
			smuggled := "GET /fetch HTTP/1.1\r\n\r\n"
			_, err := fmt.Fprintf(c.socket, "POST %s HTTP/1.1\r\n%s\r\nContent-Length: %d\r\n\r\n%s", target, headers, len(smuggled), smuggled)
			require.NoError(t, err)
			r, err := http.ReadResponse(c.reader, nil)
			require.NoError(t, err)
			require.Equal(t, want, r.StatusCode, "%s %q", target, headers)
			text, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			if want == 403 {
				require.Contains(t, string(text), "a browser")
				_, err = c.reader.ReadByte()
				require.Error(t, err, "the connection has ended")
			}
		}
	}
}
