// Package openapi is tests only, in a module of its own: the document /openapi.json of a running
// server is valid OpenAPI 3.1, and requests and replies of the server are what it says.
package openapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"

	"gotycoon/server"
)

// patience is how long a test waits for something that should happen at once.
const patience = 30 * time.Second

// serve runs a server and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	cfg := server.DefaultConfig()
	cfg.Host, cfg.Databases = "127.0.0.1", []string{filepath.Join(t.TempDir(), "a.kct")}
	cfg.UpdateLog, cfg.ServerID = t.TempDir(), 1
	cfg.Port = 0
	cfg.Reload.Settings = []server.Setting{{Name: "port", Value: "0", Source: "default"}}
	cfg.Reload.Change = func([]server.Setting, string, string) (server.Config, error) {
		return server.Config{}, errors.New("no")
	}
	addrs := make(chan net.Addr, 1)
	cfg.Listening = func(a net.Addr) { addrs <- a }
	ctx, stop := context.WithCancel(context.Background())
	exit := make(chan int, 1)
	var stderr bytes.Buffer
	go func() { exit <- server.Run(ctx, cfg, io.Discard, &stderr) }()
	select {
	case a := <-addrs:
		t.Cleanup(func() {
			stop()
			require.Zero(t, <-exit)
			require.Empty(t, stderr.String())
		})
		return a.String()
	case code := <-exit:
		stop()
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	return ""
}

// calls are bodies for every procedure, and the status of the answer. Of the procedures that change
// who is the primary or what is served, only the refusals are tried.
var calls = []struct {
	procedure, body string
	status          int
}{
	{"add", `{"key":"a","value":"1","xt":100}`, 200},
	{"add", `{"key":"a","value":"1"}`, 450},
	{"append", `{"DB":0,"key":"a","value":"2"}`, 200},
	{"cas", `{"key":"a","oval":"12","nval":"3"}`, 200},
	{"cas", `{"key":"a","oval":"12"}`, 450},
	{"check", `{"key":"a"}`, 200},
	{"checksum", `{"by":"key","parts":2}`, 200},
	{"checksum", `{"by":"nothing"}`, 400},
	{"cluster_change", `{"do":"add","name":"a:1"}`, 501},
	{"cluster_status", `{}`, 501},
	{"compact", `{"look":true}`, 200},
	{"config_get", `{}`, 200},
	{"config_set", `{"name":"port","value":"9"}`, 400},
	{"set_bulk", `{"records":{"b":"2","c":3},"atomic":true}`, 200},
	{"set_bulk", `{"records":[{"key":{"base64":"/w=="},"value":{"base64":"AP8="}}]}`, 200},
	{"get", `{"key":{"base64":"/w=="}}`, 200},
	{"get", `{"key":"none"}`, 450},
	{"get_bulk", `{"keys":["b","c",{"base64":"/w=="}]}`, 200},
	{"cur_jump", `{"CUR":1}`, 200},
	{"cur_check", `{"CUR":1}`, 200},
	{"cur_get", `{"CUR":1,"step":true}`, 200},
	{"cur_get_key", `{"CUR":1}`, 200},
	{"cur_get_value", `{"CUR":1}`, 200},
	{"cur_set_value", `{"CUR":1,"value":"x"}`, 200},
	{"cur_step", `{"CUR":1}`, 200},
	{"cur_step_back", `{"CUR":1}`, 200},
	{"cur_seize", `{"CUR":1}`, 200},
	{"cur_remove", `{"CUR":1}`, 200},
	{"cur_jump_back", `{"CUR":1}`, 200},
	{"cur_delete", `{"CUR":1}`, 200},
	{"echo", `{"hello":"you"}`, 200},
	{"help", `{}`, 200},
	{"hotkeys", `{"seconds":0}`, 200},
	{"monitor", `{"seconds":0}`, 200},
	{"increment", `{"key":"n","num":5,"POSITION":"?"}`, 200},
	{"set", `{"key":"text","value":"x"}`, 200},
	{"increment", `{"key":"text","num":5}`, 450},
	{"increment_double", `{"key":"d","num":1.5}`, 200},
	{"increment_double", `{"key":"d","num":"inf"}`, 200},
	{"match_prefix", `{"prefix":"","max":3}`, 200},
	{"match_regex", `{"regex":"^a"}`, 200},
	{"match_similar", `{"origin":"a","utf":true}`, 200},
	{"play_script", `{"name":"f","records":{"x":"y"}}`, 501},
	{"replace", `{"key":"text","value":"9","SIGNAL":"s"}`, 200},
	{"replicas", `{}`, 200},
	{"report", `{}`, 200},
	{"seize", `{"key":"text"}`, 200},
	{"set", `{"key":"a","value":true,"xt":10}`, 200},
	{"status", `{"DB":"a.kct"}`, 200},
	{"synchronize", `{"hard":false}`, 200},
	{"touch", `{"key":"a","xt":100}`, 200},
	{"tune_replication", `{"host":"h"}`, 501},
	{"ulog_hold", `{"name":"h","ttl":60}`, 200},
	{"ulog_holds", `{}`, 200},
	{"ulog_list", `{}`, 200},
	{"ulog_reach", `{"ts":"0"}`, 200},
	{"ulog_release", `{"name":"h"}`, 200},
	{"ulog_remove", `{"ts":"0"}`, 200},
	{"vacuum", `{"step":1}`, 200},
	{"void", `{}`, 200},
	{"wait_replicas", `{"replicas":1,"timeout":0.001}`, 503},
	{"watch", `{"ts":"-1"}`, 400},
	{"remove", `{"key":"a"}`, 200},
	{"remove_bulk", `{"keys":["b","c"]}`, 200},
	{"clear", `{}`, 200},
}

// The document is valid, and what it says of requests and replies holds for a server.
func TestTheServerIsWhatTheDocumentSays(t *testing.T) {
	addr := serve(t)
	client := &http.Client{Timeout: patience} // one connection: cursors belong to it
	t.Cleanup(client.CloseIdleConnections)
	r, err := client.Get("http://" + addr + "/openapi.json")
	require.NoError(t, err)
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	doc, err := openapi3.NewLoader().LoadFromData(text)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)

	called := map[string]bool{}
	for _, one := range calls {
		called["/rpc/"+one.procedure] = true
		call(t, client, router, addr, one.procedure, one.body, one.status)
	}
	for path := range doc.Paths.Map() {
		require.True(t, called[path] || path == "/{key}", "no call of %s", path)
	}
}

// call calls a procedure, and compares request and reply with the document.
func call(t *testing.T, client *http.Client, router routers.Router, addr, procedure, body string, status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/rpc/"+procedure, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	route, params, err := router.FindRoute(request)
	require.NoError(t, err, procedure)
	input := &openapi3filter.RequestValidationInput{Request: request, Route: route, PathParams: params, Options: &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true,
	}}
	require.NoError(t, openapi3filter.ValidateRequest(t.Context(), input), "%s %s", procedure, body)
	reply, err := client.Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	require.Equal(t, status, reply.StatusCode, "%s %s: %s", procedure, body, text)
	output := &openapi3filter.ResponseValidationInput{RequestValidationInput: input, Status: reply.StatusCode, Header: reply.Header, Options: input.Options}
	require.NoError(t, openapi3filter.ValidateResponse(t.Context(), output.SetBodyBytes(text)), "%s %s: %s", procedure, body, text)
}
