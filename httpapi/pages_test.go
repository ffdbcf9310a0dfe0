package httpapi_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/httpapi"
	"gotycoon/internal/browser"
)

// openToPages has a policy for browsers, as a real server does.
func openToPages(t *testing.T) *server {
	t.Helper()
	pages, err := browser.New([]string{"kt.internal"})
	require.NoError(t, err)
	return newServerWith(t, db.Options{}, httpapi.Options{Pages: pages}, "%")
}

const (
	ofAnotherSite = "Host: 127.0.0.1:1978\r\nOrigin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\n"
	rebound       = "Host: evil.example:1978\r\nUser-Agent: Mozilla/5.0\r\nAccept-Language: de\r\n"
	untold        = "Host: 10.0.0.5:1978\r\nUser-Agent: Mozilla/5.0\r\nAccept-Language: de\r\n"
)

// A request that a page of another site makes is refused, and nothing behind it on the connection
// is served, because its body may be written like a request.
func TestRequestsOfPages(t *testing.T) {
	smuggled := "POST /rpc/clear HTTP/1.1\r\n\r\n"
	for _, headers := range []string{ofAnotherSite, rebound} {
		for _, request := range []string{
			"GET /rpc/get?key=k HTTP/1.1\r\n", "GET /k HTTP/1.1\r\n", "HEAD /k HTTP/1.1\r\n", "PUT /k HTTP/1.1\r\n", "DELETE /k HTTP/1.1\r\n",
			"POST /rpc/clear HTTP/1.1\r\n", "GET /rpc/clear HTTP/1.1\r\n", "POST /rpc/synchronize?command=x HTTP/1.1\r\n",
			"POST /rpc/echo HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: " + itoa(len(smuggled)) + "\r\n",
			"OPTIONS /k HTTP/1.1\r\n", "GET /rpc/void HTTP/1.0\r\n",
		} {
			s := openToPages(t)
			require.NoError(t, s.catalog.DB(0).Set(nil, []byte("k"), []byte("v"), record.Never))
			c := s.dial(t)
			r := c.send(request + headers + "\r\n" + smuggled).receive(request[:4] == "HEAD")
			require.Equal(t, "403 Forbidden", r.status, request)
			require.Equal(t, "close", r.header("Connection"))
			if request[:4] != "HEAD" {
				require.Contains(t, r.body, "-http-hosts", "says what to do")
			}
			rest, _ := io.ReadAll(c.in) // a pipe that is closed while the client writes
			require.Empty(t, rest)
			value, _, err := s.catalog.DB(0).Get(nil, nil, []byte("k"))
			require.NoError(t, err, request)
			require.Equal(t, "v", string(value))
		}
	}
}

// A browser's request without the page's name may read and may not change anything.
func TestBrowsersThatTellNothing(t *testing.T) {
	s := openToPages(t)
	require.NoError(t, s.catalog.DB(0).Set(nil, []byte("k"), []byte("v"), record.Never))
	for target, want := range map[string]string{
		"/k": "200", "/rpc/get?key=k": "200", "/rpc/report": "200", "/rpc/void": "200", "/rpc/nothing": "501", "/rpc/match_prefix?prefix=": "200",
		"/rpc/set?key=a&value=b": "403", "/rpc/clear": "403", "/rpc/cle%61r": "403", "/rpc/increment?key=n&num=1": "403", "/rpc/synchronize": "403",
		"/rpc/void?SIGNAL=x": "403", "/rpc/void?SIGNA%4c=x": "403", "/rpc/play_script?name=x": "403", "/rpc/vacuum": "403",
	} {
		require.Equal(t, want, s.dial(t).do("GET " + target + " HTTP/1.1\r\n" + untold + "\r\n").status[:3], target)
	}
}

// All other clients are served, and so are browsers whose user has typed the address or whose page
// is of this server.
func TestRequestsThatAreWanted(t *testing.T) {
	s := openToPages(t)
	c := s.dial(t)
	for _, headers := range []string{
		"", "Host: db1.internal:1978\r\n", "Host: a b\r\n", "Host: evil.example\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n",
		"Host: db1.internal\r\nUser-Agent: node\r\nAccept-Language: *\r\nSec-Fetch-Mode: cors\r\n",
		"Host: 127.0.0.1:1978\r\nSec-Fetch-Site: none\r\nUser-Agent: Mozilla/5.0\r\n",
		"Host: kt.internal:1978\r\nOrigin: http://kt.internal:1978\r\nUser-Agent: Mozilla/5.0\r\n",
		"Host: 10.0.0.5:1978\r\nReferer: http://10.0.0.5:1978/k\r\n",
	} {
		require.Equal(t, "200 OK", c.do("POST /rpc/set?key=k&value=v HTTP/1.1\r\n"+headers+"Content-Length: 0\r\n\r\n").status, headers)
	}
}

// Right credentials prove that the user means this server by the name in the request; wrong and
// unknown credentials prove nothing.
func TestCredentialsProveTheHost(t *testing.T) {
	pages, err := browser.New(nil)
	require.NoError(t, err)
	guarded, _ := guardedServer(t, []string{"anna"}, "allow anna read,write", "allow anyone read,write prefix=public")
	s := newServerWith(t, db.Options{}, httpapi.Options{Pages: pages}, "%")
	s.access = guarded.access
	request := "POST /rpc/set?key=public&value=v HTTP/1.1\r\nOrigin: http://kt.example\r\nHost: kt.example\r\nContent-Length: 0\r\n\r\n"
	require.Equal(t, "200 OK", s.dial(t).do(as("anna", request)).status)
	require.Equal(t, "403 Forbidden", s.dial(t).do(request).status)
	require.Equal(t, "401 Unauthorized", s.dial(t).do(as("nobody", request)).status)
	open := openToPages(t)
	require.Equal(t, "403 Forbidden", open.dial(t).do(as("anna", request)).status, "nobody looks at credentials")
}
