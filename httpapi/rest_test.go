package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestREST(t *testing.T) {
	c := newServer(t, ":", "%").dial(t)
	put := func(target, headers, body string) *reply {
		return c.do("PUT " + target + " HTTP/1.1\r\n" + headers + "Content-Length: " + itoa(len(body)) + "\r\n\r\n" + body)
	}
	get := func(method, target string) *reply { return c.do(method + " " + target + " HTTP/1.1\r\n\r\n") }

	r := put("/%/x%2fy?q", "", "v\x00\n")
	require.Equal(t, "201 Created", r.status)
	require.Equal(t, "http://localhost:1978/%/x%2fy?q", r.header("Location"))
	require.Equal(t, "v\x00\n", get("GET", "/x%2Fy").body, "a lone percent sign is no name")
	require.Equal(t, "404 Not Found", get("GET", "/1/x/y").status)

	require.Equal(t, "201 Created", put("/%25/a", "X-Kt-Mode: ADD\r\n", "1").status)
	r = put("/1/a", "X-Kt-Mode: add\r\n", "2")
	require.Equal(t, "450 Logical Inconsistency", r.status)
	require.Equal(t, "DB: 6: record duplication: record duplication", r.header("X-Kt-Error"))
	require.Equal(t, "450 Logical Inconsistency", put("/1/b", "X-Kt-Mode: replace\r\n", "2").status)
	require.Equal(t, "201 Created", put("/1/a", "X-Kt-Mode: add \r\n", "3").status, "no mode, so set")

	r = get("HEAD", "/1/a")
	require.Equal(t, []string{"Content-Length: 1"}, r.headers)
	require.Equal(t, []string{"Content-Length: 0"}, get("DELETE", "/1/a").headers)
	require.Equal(t, "404 Not Found", get("DELETE", "/1/a").status)
	require.Equal(t, "501 Not Implemented", c.do(post("/a", "text/plain", "x")).status)
	require.Equal(t, "no such database\n", get("GET", "/nosuch/a").body)
	require.Empty(t, get("HEAD", "/nosuch/a").headers)
	require.Equal(t, "no such database\n", c.do(post("/nosuch/a", "text/plain", "x")).body)
}

func TestRESTExpiration(t *testing.T) {
	c := newServer(t).dial(t)
	for _, tc := range []struct{ xt, want string }{
		{"Fri, 01 Jan 2100 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"},
		{"1099511627774", "Mon, 20 Feb 36812 00:36:14 GMT"},
		{"1099511627775", ""},
		{"0", ""},
		{"never", ""},
	} {
		c.do("PUT /a HTTP/1.1\r\nX-Kt-Xt: " + tc.xt + "\r\n\r\n")
		require.Equal(t, tc.want, c.do("GET /a HTTP/1.1\r\n\r\n").header("X-Kt-Xt"), tc.xt)
		require.Equal(t, tc.want, c.do("HEAD /a HTTP/1.1\r\n\r\n").header("X-Kt-Xt"), tc.xt)
	}
	require.Equal(t, "201 Created", c.do("PUT /a HTTP/1.1\r\nX-Kt-Xt: 1\r\n\r\n").status)
	require.Equal(t, "404 Not Found", c.do("GET /a HTTP/1.1\r\n\r\n").status)
}

// Keys in any alphabet survive without escapes.
func TestRESTKeepsEightBitKeys(t *testing.T) {
	c := newServer(t).dial(t)
	require.Equal(t, "201 Created", c.do("PUT /x\xe5\xb9\xb9y HTTP/1.1\r\nContent-Length: 1\r\n\r\nv").status)
	require.Equal(t, "value\tv\n", c.ok("get", "key", "x\xe5\xb9\xb9y"))
	require.Equal(t, "v", c.do("GET /x%e5%b9%b9y HTTP/1.1\r\n\r\n").body)
}
