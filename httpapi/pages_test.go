package httpapi_test

import (
	"io"
	"strings"
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

// What a browser gets can never be taken for a page or a script of this server: anybody who may
// write could store one, which would call procedures with the rights of whoever opens it.
func TestRepliesToBrowsersAreNoPages(t *testing.T) {
	const script = "<script>fetch('/rpc/clear',{method:'POST'})</script>"
	s := openToPages(t)
	require.NoError(t, s.catalog.DB(0).Set(nil, []byte("x.html"), []byte(script), record.XT(100)))
	typed := "Host: 127.0.0.1:1978\r\nUser-Agent: Mozilla/5.0\r\nSec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"
	for _, headers := range []string{typed, untold, strings.Replace(typed, "none", "same-origin", 1)} {
		for _, of := range []struct{ request, status, kind string }{
			{"GET /x.html", "200 OK", "application/octet-stream"},
			{"HEAD /x.html", "200 OK", "application/octet-stream"},
			{"GET /%3Cscript%3E", "404 Not Found", ""},
			{"GET /%3Cscript%3E/x", "400 Bad Request", "text/plain"},
			{"GET /rpc/get?key=x.html", "200 OK", "text/tab-separated-values"},
			{"GET /rpc/%3Cscript%3E", "501 Not Implemented", "text/tab-separated-values"},
			{"GET /rpc/help", "200 OK", ""},
		} {
			r := s.dial(t).send(of.request + " HTTP/1.1\r\n" + headers + "\r\n").receive(of.request[:4] == "HEAD")
			require.Equal(t, of.status, r.status, of.request)
			require.Equal(t, "nosniff", r.header("X-Content-Type-Options"), of.request)
			require.Equal(t, "sandbox; default-src 'none'", r.header("Content-Security-Policy"), of.request)
			if of.kind != "" {
				require.Equal(t, of.kind, r.header("Content-Type"), of.request)
			}
		}
	}
	refused := s.dial(t).do("GET /x.html HTTP/1.1\r\n" + ofAnotherSite + "\r\n")
	require.Equal(t, "403 Forbidden", refused.status)
	require.Equal(t, "nosniff", refused.header("X-Content-Type-Options"))
}

// The links of a page in a sandbox would count as links of another site, so our own page is in
// none. It has no scripts.
func TestTheWelcomeKeepsItsLinks(t *testing.T) {
	r := openToPages(t).dial(t).do("GET / HTTP/1.1\r\nAccept: text/html\r\n" + untold + "\r\n")
	require.Equal(t, "text/html; charset=utf-8", r.header("Content-Type"))
	require.Equal(t, "default-src 'none'", r.header("Content-Security-Policy"))
	require.Equal(t, "nosniff", r.header("X-Content-Type-Options"))
}

// Programs get the replies of the original, and so does everybody where browsers may do everything,
// and who asks behind a browser on the same connection.
func TestOnlyBrowsersGetTheirHeaders(t *testing.T) {
	all, err := browser.New([]string{browser.AnyHost})
	require.NoError(t, err)
	open := newServerWith(t, db.Options{}, httpapi.Options{Pages: all}, "%")
	s := openToPages(t)
	for _, of := range []struct {
		server  *server
		headers string
	}{
		{s, ""}, {s, "Host: 127.0.0.1:1978\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n"},
		{s, "Host: db1\r\nUser-Agent: node\r\nAccept-Language: *\r\nSec-Fetch-Mode: cors\r\n"},
		{open, untold},
	} {
		require.NoError(t, of.server.catalog.DB(0).Set(nil, []byte("k"), []byte("v"), record.Never))
		c := of.server.dial(t)
		c.do("GET /k HTTP/1.1\r\n" + untold + "\r\n")
		for _, target := range []string{"/k", "/none", "/none/k", "/rpc/get?key=k", "/rpc/none"} {
			r := c.do("GET " + target + " HTTP/1.1\r\n" + of.headers + "\r\n")
			require.Empty(t, r.header("X-Content-Type-Options"), target)
			require.Empty(t, r.header("Content-Security-Policy"), target)
			if target == "/k" || target == "/none/k" {
				require.Empty(t, r.header("Content-Type"), target)
			}
		}
	}
}
