package compat

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
)

// testTimedManagerAfterAKill kills a server, reads and changes its database with the tool, and
// starts the server again. The server must have everything acknowledged and the tool's changes,
// also after it is killed once more.
func testTimedManagerAfterAKill(t *testing.T, p programs) {
	for _, tc := range []struct {
		name   string
		server []string // options
		tool   []string
	}{
		{"log of the server", []string{"-ulog", "ulog", "-sid", "1"}, nil},
		{"log of the server, the tool writes there too", []string{"-ulog", "ulog", "-sid", "1"}, []string{"-ulog", "ulog", "-sid", "1", "-dbid", "1"}},
		{"log of the server, the tool has another", []string{"-ulog", "ulog", "-sid", "1"}, []string{"-ulog", "other"}},
		{"log of the file", nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := ktproc.Options{Bin: p.server, Dir: t.TempDir(), Args: tc.server, DBs: []string{"first.kct", "second.kct"}}
			run := func(command string, args ...string) cliResult {
				all := append(append([]string{command}, tc.tool...), args...)
				// The log is named relative to the server's directory, so run the tool elsewhere.
				return runTool(t, filepath.Dir(o.Dir), p.timed, "", all...)
			}
			path := filepath.Join(o.Dir, "second.kct")
			if len(tc.tool) > 0 {
				tc.tool[1] = filepath.Join(o.Dir, tc.tool[1])
			}

			server := ktproc.Start(t, o)
			for i := range 100 {
				put(t, server, fmt.Sprintf("key%03d", i), "server")
			}
			locked := run("get", "-otl", path, "key000")
			require.Equal(t, 1, locked.exit)
			require.Contains(t, locked.stderr, "another process has the file open")
			server.Kill()

			require.Equal(t, cliResult{stdout: "server\n"}, run("get", path, "key099"))
			require.Equal(t, 100, strings.Count(run("list", path).stdout, "\n"))
			require.Equal(t, " (end)\n100 records were checked successfully\n", run("check", path).stdout)
			copied := filepath.Join(o.Dir, "copy.kct")
			require.Zero(t, run("copy", path, copied).exit)
			require.Equal(t, cliResult{stdout: "server\n"}, run("get", copied, "key099"))
			require.Equal(t, cliResult{}, run("set", path, "key000", "tool"))
			require.Equal(t, cliResult{}, run("remove", path, "key001"))

			for range 2 {
				server = ktproc.Start(t, o)
				require.Equal(t, "tool", fetch(t, server, "key000"))
				require.Equal(t, "", fetch(t, server, "key001"))
				for i := 2; i < 100; i++ {
					require.Equal(t, "server", fetch(t, server, fmt.Sprintf("key%03d", i)))
				}
				server.Kill()
			}
		})
	}
}

// put stores a record in the second database of a server.
func put(t *testing.T, s *ktproc.Server, key, value string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPut, "http://"+s.Addr()+"/second.kct/"+key, strings.NewReader(value))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusCreated, resp.StatusCode)
}

// fetch returns the value of a record of the second database, "" where there is none.
func fetch(t *testing.T, s *ktproc.Server, key string) string {
	t.Helper()
	resp, err := http.Get("http://" + s.Addr() + "/second.kct/" + key)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(body)
}
