package httpapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/httpapi"
)

// The document of OpenAPI says what its version wants it to say, and every reference in it leads
// somewhere.
func TestOpenAPI(t *testing.T) {
	r := newServer(t).dial(t).do("GET /openapi.json HTTP/1.1\r\n\r\n")
	require.Equal(t, "200 OK", r.status)
	require.Equal(t, "application/json", r.header("Content-Type"))
	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.body), &doc))
	require.Equal(t, "3.1.0", doc["openapi"])
	require.Subset(t, doc["info"], map[string]any{"title": "gotycoon", "version": "1"})
	ids := map[any]bool{}
	for path, item := range doc["paths"].(map[string]any) {
		require.True(t, strings.HasPrefix(path, "/"), path)
		for method, op := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			require.Contains(t, []string{"get", "head", "post", "put", "delete"}, method, path)
			op := op.(map[string]any)
			require.False(t, ids[op["operationId"]], "%s twice", op["operationId"])
			ids[op["operationId"]] = true
			require.NotEmpty(t, op["responses"], path)
			if strings.HasPrefix(path, "/rpc/") {
				require.Contains(t, op["responses"], "400", "%s: any body may be broken", path)
			} else {
				require.Contains(t, op["responses"], "default", "%s: access, a full disk", path)
			}
			for status, response := range op["responses"].(map[string]any) {
				require.Regexp(t, `^([2345]\d\d|default)$`, status)
				response := response.(map[string]any)
				require.True(t, response["description"] != nil || response["$ref"] != nil, "%s %s", path, status)
			}
		}
	}
	require.Len(t, ids, len(doc["paths"].(map[string]any))+3)
	followReferences(t, doc, doc)
}

// followReferences looks up every $ref below a value, checks that what is required is described,
// and that types are those of JSON.
func followReferences(t *testing.T, doc map[string]any, v any) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			followReferences(t, doc, e)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			var at any = doc
			for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
				at = at.(map[string]any)[name]
			}
			require.NotNil(t, at, ref)
		}
		if names, ok := v["required"].([]any); ok {
			for _, name := range names {
				require.Contains(t, v["properties"], name)
			}
		}
		if kind, ok := v["type"].(string); ok {
			require.True(t, slices.Contains([]string{"object", "array", "string", "integer", "number", "boolean", "http"}, kind), kind)
		}
		for _, e := range v {
			followReferences(t, doc, e)
		}
	}
}

func TestHelpInFull(t *testing.T) {
	c := newServer(t).dial(t)
	require.Contains(t, c.ok("help"), "set\tstore a record\n")
	require.Contains(t, c.ok("help", "name", "set"), "key\tthe key\n")
	status, _ := c.call("help", "name", "nosuch")
	require.Equal(t, "501", status)

	var all struct {
		Input      []struct{ Name string }
		Procedures []struct {
			Name, Needs string
			Input       []struct {
				Name, Kind string
				Always     bool
			}
			Statuses []struct {
				Status int
				When   string
			}
		}
	}
	r := c.do(with(acceptJSON, "GET /rpc/help HTTP/1.1\r\n\r\n"))
	require.NoError(t, json.Unmarshal([]byte(r.body), &all))
	require.Equal(t, "DB", all.Input[0].Name)
	add := all.Procedures[0]
	require.Equal(t, "add write of the key", add.Name+" "+add.Needs)
	require.Equal(t, "key bytes true", fmt.Sprint(add.Input[0].Name, " ", add.Input[0].Kind, " ", add.Input[0].Always))
	require.Contains(t, fmt.Sprint(add.Statuses), "{450 record duplication (code 6)}")
	require.Contains(t, c.json("help", `{"name":"get"}`).body, `"name": "get"`)
	require.Contains(t, c.json("help", `{"name":"cur_delete"}`).body, `"name": "CUR"`)

	text := c.do(with("Accept: text/plain\r\n", "GET /rpc/help?name=watch HTTP/1.1\r\n\r\n"))
	require.Equal(t, "text/plain; charset=utf-8", text.header("Content-Type"))
	require.True(t, strings.HasPrefix(text.body, "# watch\n"), text.body)
	require.Contains(t, text.body, "Status 410: the update log has no longer everything")
	page := c.do(with("Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n", "GET /rpc/help HTTP/1.1\r\n\r\n"))
	require.True(t, strings.HasPrefix(page.body, "# Procedures\n"))
}

// What the table calls required is required: without it the answer is 400.
func TestRequiredParameters(t *testing.T) {
	c := newServer(t, "%").dial(t)
	var all struct {
		Procedures []struct {
			Name   string
			Cursor bool `json:"takes_cur"`
			Input  []struct {
				Name   string
				Always bool
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(c.do(with(acceptJSON, "GET /rpc/help HTTP/1.1\r\n\r\n")).body), &all))
	c.ok("set", "key", "1", "value", "1")
	tried := 0
	for _, p := range all.Procedures {
		if slices.Contains([]string{"cluster_change", "config_get", "config_set", "play_script", "ulog_hold", "ulog_reach", "ulog_release", "ulog_remove", "wait_replicas", "watch"}, p.Name) {
			continue // not switched on here, which is told first
		}
		for _, missing := range p.Input {
			rows := []string{"CUR", "1"}
			for _, in := range p.Input {
				if in.Always && in.Name != missing.Name {
					rows = append(rows, in.Name, "1")
				}
			}
			if p.Cursor {
				c.ok("cur_jump", "CUR", "1")
			}
			status, body := c.call(p.Name, rows...)
			require.Equal(t, missing.Always, status == "400", "%s without %s: %s %s", p.Name, missing.Name, status, body)
			tried++
		}
	}
	require.Greater(t, tried, 50)
}

// GET / has a page where there is no record with an empty key, and stays what it was: 404.
func TestWelcome(t *testing.T) {
	s := newServerWith(t, db.Options{}, httpapi.Options{Console: "127.0.0.1:9100"})
	c := s.dial(t)
	r := c.do("GET / HTTP/1.1\r\n\r\n")
	require.Equal(t, "404 Not Found", r.status)
	require.Equal(t, "DB: 7: no record: no record", r.header("X-Kt-Error"))
	require.Contains(t, r.body, "/openapi.json")
	require.Contains(t, r.body, "its admin listener, 127.0.0.1:9100")
	r = c.do(with("Accept: text/html\r\n", "GET / HTTP/1.1\r\n\r\n"))
	require.Equal(t, "text/html; charset=utf-8", r.header("Content-Type"))
	require.Contains(t, r.body, `<a href="/rpc/help">`)
	require.Empty(t, c.do("GET /?a=b HTTP/1.1\r\n\r\n").body, "recorded of the original")
	require.Equal(t, "404 Not Found", c.do("HEAD / HTTP/1.1\r\n\r\n").status)

	c.ok("set", "key", "", "value", "mine")
	c.ok("set", "key", "openapi.json", "value", "mine too")
	require.Equal(t, "mine", c.do("GET / HTTP/1.1\r\n\r\n").body)
	require.Equal(t, "mine too", c.do("GET /openapi.json HTTP/1.1\r\n\r\n").body)
	c.requireOpen()
}
