package util_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// secretFile returns the path of a file with a secret.
func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// openServer answers with the credentials that it is shown.
func openServer(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/tab-separated-values")
		user, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "basic\t%s %s\nheader\t%s\n", user, password, strings.Join(r.Header.Values("Authorization"), ", "))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestCredentials(t *testing.T) {
	s := openServer(t)
	host, port, err := net.SplitHostPort(s.Listener.Addr().String())
	require.NoError(t, err)
	password, token := secretFile(t, "hunter2\nmore"), secretFile(t, "0123\r\n")
	for _, row := range []struct {
		env       string // NAME=VALUE …
		options   []string
		rpc, http string // what the server is shown; ! begins an error
	}{
		{"", nil, "header\t\n", "header\t\n"},
		{"", []string{"-user", "anna", "-password-file", password}, "basic\tanna hunter2\n", "basic\tanna hunter2\n"},
		{"KT_PASSWORD=secret", []string{"-user", "anna"}, "basic\tanna secret\n", "basic\tanna secret\n"},
		{"KT_USER=anna", []string{"-password-file", password}, "basic\tanna hunter2\n", "basic\tanna hunter2\n"},
		{"", []string{"-token-file", token}, "header\tBearer 0123\n", "header\tBearer 0123\n"},
		{"KT_TOKEN=4567", nil, "header\tBearer 4567\n", "header\t\n"},
		{"KT_USER=anna KT_PASSWORD=secret", nil, "basic\tanna secret\n", "header\t\n"},
		{"KT_TOKEN=4567", []string{"-user", "anna", "-password-file", password}, "basic\tanna hunter2\n", "basic\tanna hunter2\n"},
		{"", []string{"-user", "anna", "-token-file", token}, "!takes the place", "!takes the place"},
		{"", []string{"-token-file", "none"}, "!reading a secret", "!reading a secret"},
		{"", []string{"-password-file", password}, "header\t\n", "!-user is missing"},
		{"", []string{"-user", "anna", "-ah", "authorization", "Basic x"}, "", "!takes the place"},
	} {
		t.Run(fmt.Sprint(row.env, row.options), func(t *testing.T) {
			for _, name := range []string{"KT_USER", "KT_PASSWORD", "KT_TOKEN"} {
				t.Setenv(name, "")
			}
			for _, pair := range strings.Fields(row.env) {
				name, value, _ := strings.Cut(pair, "=")
				t.Setenv(name, value)
			}
			check := func(want string, args ...string) {
				t.Helper()
				r := command("", args...)
				if problem, fails := strings.CutPrefix(want, "!"); fails {
					require.Equal(t, 1, r.exit)
					require.Contains(t, r.stderr, problem)
					return
				}
				require.Zero(t, r.exit, r.stderr)
				require.Contains(t, r.stdout, want)
			}
			if row.rpc != "" {
				check(row.rpc, append(append([]string{"rpc", "-host", host, "-port", port}, row.options...), "echo")...)
			}
			check(row.http, append(append([]string{"http"}, row.options...), s.URL)...)
		})
	}
}

func TestTheManualHasTheCredentials(t *testing.T) {
	page, completion := succeed(t, "", "man"), succeed(t, "", "completion", "bash")
	for _, option := range []string{"user", "password-file", "token-file"} {
		require.Contains(t, strings.ReplaceAll(page, `\-`, "-"), "-"+option)
		require.Contains(t, completion, "-"+option)
	}
}
