package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/httpapi"
	"gotycoon/internal/netio"
)

const acceptJSON = "Accept: application/json\r\n"

// json calls a procedure with a body of JSON.
func (c *client) json(procedure, body string) *reply {
	c.t.Helper()
	return c.do(post("/rpc/"+procedure, "application/json", body))
}

// with adds headers to a request.
func with(headers, request string) string { return strings.Replace(request, "\r\n", "\r\n"+headers, 1) }

// everyTakes ends the errors about names of parameters.
const everyTakes = "as every procedure DB, CUR, WAIT, WAITTIME, SIGNAL, SIGNALBROAD, REPLICAS, POSITION"

func TestJSON(t *testing.T) {
	c := newServer(t, "%").dial(t)
	for _, step := range []struct{ procedure, body, status, want string }{
		{"set", `{"key":"tea","value":"green","xt":100}`, "200", `{}`},
		{"get", `{"key":"tea"}`, "200", `{"value":"green","xt":1795227692}`},
		{"set", `{"key":{"base64":"/w=="},"value":{"base64":"AP8="}}`, "200", `{}`},
		{"get", `{"key":{"base64":"/w=="}}`, "200", `{"value":{"base64":"AP8="}}`},
		{"check", `{"key":"tea"}`, "200", `{"vsiz":5,"xt":1795227692}`},
		{"increment", `{"key":"n","num":9007199254740993}`, "200", `{"num":9007199254740993}`},
		{"increment", `{"key":"n","num":1e3}`, "200", `{"num":9007199254741993}`},
		{"increment_double", `{"key":"d","num":1.5}`, "200", `{"num":1.500000}`},
		{"increment_double", `{"key":"d","num":"inf"}`, "200", `{"num":"inf"}`},
		{"cas", `{"key":"tea","oval":"green","nval":null}`, "200", `{}`},
		{"get", `{"key":"tea"}`, "450", `{"error":"DB: 7: no record: no record","code":7,"status":450}`},
		{"set_bulk", `{"records":{"b":"2","a":1},"atomic":true}`, "200", `{"num":2}`},
		{"set_bulk", `{"records":[{"key":{"base64":"/g=="},"value":"3"}],"xt":5}`, "200", `{"num":1}`},
		{"get_bulk", `{"keys":["b","a","x",{"base64":"/g=="}]}`, "200",
			`{"num":3,"records":[{"key":"a","value":"1"},{"key":"b","value":"2"},{"key":{"base64":"/g=="},"value":"3"}]}`},
		{"get_bulk", `{"keys":["x"],"atomic":false}`, "200", `{"num":0,"records":[]}`},
		{"match_similar", `{"origin":"b","range":1,"max":2}`, "200", `{"num":2,"keys":["b","a"]}`},
		{"match_prefix", `{"prefix":"z"}`, "200", `{"num":0,"keys":[]}`},
		{"remove_bulk", `{"keys":["a","b","x"]}`, "200", `{"num":2}`},
		{"echo", `{"x":"y","SIGNAL":"s"}`, "200", `{"SIGNAL":"s","SIGNALED":0,"x":"y"}`},
		{"cur_jump", `{"CUR":1,"key":"n"}`, "200", `{}`},
		{"cur_get_key", `{"CUR":1,"step":false}`, "200", `{"key":"n"}`},
		{"set", `{"key":"tea"}`, "400", `{"error":"invalid parameters: set needs \"value\": it takes key, value, xt, and ` + everyTakes + `","status":400}`},
		{"set", `{"key":"tea","vlaue":1}`, "400",
			`{"error":"invalid parameters: set has no parameter \"vlaue\": it takes key, value, xt, and ` + everyTakes + `","status":400}`},
		{"set", `{"value":"","key":null}`, "400", `{"error":"invalid parameters: set needs \"key\": it takes key, value, xt, and ` + everyTakes + `","status":400}`},
		{"void", `{"keys":["a"]}`, "400", `{"error":"invalid parameters: void takes no records and no keys, but ` + everyTakes + `","status":400}`},
		{"get_bulk", `{"key":"a"}`, "400", `{"error":"invalid parameters: get_bulk has no parameter \"key\": it takes keys, atomic, and ` + everyTakes + `","status":400}`},
		{"get", `{"key":"tea","DB":"x"}`, "400", `{"error":"no such database","status":400}`},
		{"nosuch", `{}`, "501", `{"error":"not implemented: nosuch","status":501}`},
		{"get", `{"key":"tea",}`, "400",
			`{"error":"the JSON body is wrong at line 1, column 14, in \"key\": expected the name of a member, in double quotes","status":400}`},
	} {
		r := c.json(step.procedure, step.body)
		require.Equal(t, step.want+"\n", r.body, step.body)
		require.Equal(t, step.status, r.status[:3], step.body)
		require.Equal(t, "application/json", r.header("Content-Type"))
	}
}

// Who gets JSON, and who gets the table that everybody has always got.
func TestWhoGetsJSON(t *testing.T) {
	c := newServer(t).dial(t)
	const get, tsv, form = "GET /rpc/echo?a=1 HTTP/1.1\r\n\r\n", "text/tab-separated-values", "application/x-www-form-urlencoded"
	for _, tc := range []struct {
		request string
		json    bool
	}{
		{get, false},
		{with("Accept: */*\r\n", get), false},
		{with("Accept: application/json\r\n", get), true},
		{with("accept: text/html, Application/JSON;q=0.9\r\n", get), true},
		{with("Accept: application/json, text/plain, */*\r\n", get), false},
		{with("Accept: application/json, text/tab-separated-values\r\n", get), false},
		{with("Accept: application/jsonx\r\n", get), false},
		{with(acceptJSON, post("/rpc/echo", form, "a=1")), true},
		{with(acceptJSON, post("/rpc/echo", tsv, "a\t1\n")), true},
		{post("/rpc/echo", tsv, "a\t1\n"), false},
		{post("/rpc/echo", "application/json", `{"a":"1"}`), true},
		{post("/rpc/echo", "application/json; charset=utf-8", `{"a":"1"}`), true},
		{with("Accept: */*\r\n", post("/rpc/echo", "application/json", `{"a":"1"}`)), true},
		{with("Accept: text/tab-separated-values\r\n", post("/rpc/echo", "application/json", `{"a":"1"}`)), false},
		{post("/rpc/echo?a=1", "application/json", ""), false},
	} {
		r := c.do(tc.request)
		want, kind := "a\t1\n", tsv
		if tc.json {
			want, kind = `{"a":"1"}`+"\n", "application/json"
		}
		require.Equal(t, want, r.body, tc.request)
		require.Equal(t, kind, r.header("Content-Type"))
	}
	require.Equal(t, "", c.do(with(acceptJSON, "GET /nothing HTTP/1.1\r\n\r\n")).body, "resources have no rows")
	require.Equal(t, "application/json", c.do(with(acceptJSON, "HEAD /rpc/echo?a=1 HTTP/1.1\r\n\r\n")).header("Content-Type"))
	r := c.do("POST /rpc/echo HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n4\r\n\"1\"}\r\n0\r\n\r\n")
	require.Equal(t, `{"a":"1"}`+"\n", r.body)
}

// A reply that is sent in pieces has the length that was announced, and a large value is stored as
// it is, from the body.
func TestLargeJSON(t *testing.T) {
	c := newServer(t).dial(t)
	value := strings.Repeat("é\n", 1<<20)
	text, err := json.Marshal(value)
	require.NoError(t, err)
	c.json("set", `{"key":"a","value":`+string(text)+`}`)
	require.Equal(t, value, c.do("GET /a HTTP/1.1\r\n\r\n").body)
	var got struct{ Value string }
	require.NoError(t, json.Unmarshal([]byte(c.json("get", `{"key":"a"}`).body), &got))
	require.Equal(t, value, got.Value)
	c.requireOpen()
}

// What is refused before a procedure is called is told in JSON too.
func TestRefusalsInJSON(t *testing.T) {
	s, _ := guardedServer(t, []string{"anna"}, "allow anna read prefix=a")
	for _, tc := range []struct{ user, status, want string }{
		{"", "401", `{"error":"access denied: this needs a user and password, a token, or a certificate","status":401}`},
		{"anna", "403", `{"error":"access denied: anna has no right to read for this key of database 0 (:)","status":403}`},
	} {
		r := s.dial(t).do(as(tc.user, post("/rpc/get", "application/json", `{"key":"b"}`)))
		require.Equal(t, tc.status, r.status[:3])
		require.Equal(t, tc.want+"\n", r.body)
	}
	r := s.dial(t).do(as("anna", post("/rpc/get_bulk", "application/json", `{"keys":["a1","b"]}`)))
	require.Equal(t, "403", r.status[:3], "rights of all keys")

	limits := new(netio.Limits)
	limits.SetLargest(1 << 20)
	small := newServer(t)
	small.limits = limits
	r = small.dial(t).do("POST /rpc/set HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2000000\r\n\r\n")
	require.Equal(t, "413 Request Entity Too Large", r.status)
	require.Equal(t, `{"error":"413 Request Entity Too Large (request entity too large)","status":413}`+"\n", r.body)
}

// Millions of tiny records take more memory in a table than in the body: the limit counts them.
func TestJSONTakesMemory(t *testing.T) {
	limits := new(netio.Limits)
	limits.SetBudget(8 << 20)
	s := newServer(t)
	s.limits = limits
	body := `{"keys":[` + strings.Repeat(`"",`, 400_000) + `""]}`
	r := s.dial(t).do(post("/rpc/get_bulk", "application/json", body))
	require.Equal(t, "413", r.status[:3])
	require.Zero(t, s.dial(t).ok("void"))
}

// A parameter that is no number is neither copied nor quoted however long it is.
func TestJSONLongNumbers(t *testing.T) {
	c := newServer(t).dial(t)
	r := c.json("increment", `{"key":"a","num":"`+strings.Repeat("x", 1<<20)+`"}`)
	require.Equal(t, `{"error":"invalid parameters: num must be a number, and has 1048576 bytes","status":400}`+"\n", r.body)
	r = c.json("set", `{"key":"a","value":1e308}`)
	require.Equal(t, "400", r.status[:3])
	require.Contains(t, r.body, "give it as a string")
}

// The position of a reply is a string: it does not fit a number of JavaScript.
func TestJSONPosition(t *testing.T) {
	s := newServerWith(t, db.Options{LogDir: t.TempDir(), SID: 1}, httpapi.Options{})
	r := s.dial(t).json("set", `{"key":"a","value":"1","POSITION":"?"}`)
	require.Regexp(t, `^{"POSITION":"1795227592\d{9}"}\n$`, r.body)
}

// In TSV a text that is no number counts as 0, as in the original, and a record that expires at 0 is
// gone.
func TestJSONNumbersAreNumbers(t *testing.T) {
	c := newServer(t, "%").dial(t)
	for call, body := range map[string]string{"set": `{"key":"k","value":"v","xt":"soon"}`, "increment": `{"key":"k","num":"x"}`} {
		r := c.json(call, body)
		require.Equal(t, "400 Bad Request", r.status, call)
		require.Contains(t, r.body, "must be a number, and is", call)
	}
	require.Equal(t, "200 OK", c.json("set", `{"key":"k","value":"v","xt":"100"}`).status)
	require.Equal(t, "200 OK", c.json("increment", `{"key":"n","num":-3}`).status)
}
