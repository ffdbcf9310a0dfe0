package remote_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"gotycoon/access"
	"gotycoon/internal/klog"
	"gotycoon/server"
)

// guardedServer is a server with an access file: the user anna, whose password is "hunter2", may
// write, and the token ci may read.
func guardedServer(t *testing.T, token string, rules ...string) (port string) {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("hunter2"), bcrypt.MinCost)
	require.NoError(t, err)
	digest, err := access.HashToken([]byte(token))
	require.NoError(t, err)
	cfg := server.DefaultConfig()
	cfg.Access.Path = write(t, "access", "anna:"+string(hash)+"\ntoken ci "+digest+"\nallow anna write\nallow anna read\nallow ci read\n"+strings.Join(rules, "\n"))
	ctx, cancel := context.WithCancel(context.Background())
	listening, ended := make(chan net.Addr, 1), make(chan int, 1)
	cfg.Listening = func(a net.Addr) { listening <- a }
	cfg.Port, cfg.LogLevel = 0, klog.LevelSilent
	go func() { ended <- server.Run(ctx, cfg, io.Discard, io.Discard) }()
	t.Cleanup(func() { cancel(); <-ended })
	_, port, _ = net.SplitHostPort((<-listening).String())
	return port
}

func write(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestCredentials(t *testing.T) {
	const token = "0123456789abcdef"
	port := guardedServer(t, token)
	password, tokens := write(t, "password", "hunter2\nmore"), write(t, "token", token+"\r\n")
	run := func(name string, args ...string) result {
		return command(t, "", append([]string{name, "-port", port}, args...)...)
	}
	for _, row := range []struct {
		env  string // NAME=VALUE …
		args []string
		want string // of the error, empty for success
	}{
		{"", []string{"set", "a", "b"}, "access denied: this needs a user"},
		{"", []string{"set", "-user", "anna", "-password-file", password, "a", "b"}, ""},
		{"", []string{"set", "-user", "anna", "a", "b"}, "wrong password"},
		{"", []string{"set", "-token-file", tokens, "a", "b"}, "ci has no right to write"},
		{"", []string{"get", "-token-file", tokens, "a"}, ""},
		{"KT_TOKEN=" + token, []string{"get", "a"}, ""},
		{"KT_USER=anna KT_PASSWORD=hunter2", []string{"set", "a", "b"}, ""},
		{"KT_USER=anna KT_PASSWORD=hunter2 KT_TOKEN=" + token, []string{"set", "a", "b"}, "ci has no right"},
		{"KT_PASSWORD=hunter2 KT_TOKEN=" + token, []string{"set", "-user", "anna", "a", "b"}, ""},
		{"KT_USER=anna KT_PASSWORD=no", []string{"set", "-password-file", password, "a", "b"}, ""},
		{"", []string{"compare", "localhost:" + port}, "access denied: this needs a user"},
		{"", []string{"compare", "-token-file", tokens, "localhost:" + port}, ""},
		{"", []string{"get", "-token-file", "/no/such/file", "a"}, "no such file"},
		{"", []string{"get", "-token-file", tokens, "-user", "anna", "a"}, "takes the place"},
	} {
		t.Run(row.env+strings.Join(row.args, " "), func(t *testing.T) {
			for setting := range strings.FieldsSeq(row.env) {
				name, value, _ := strings.Cut(setting, "=")
				t.Setenv(name, value)
			}
			have := run(row.args[0], row.args[1:]...)
			if row.want == "" {
				require.Zero(t, have.exit, have.stderr)
				return
			}
			require.Equal(t, 1, have.exit)
			require.Contains(t, have.stderr, row.want)
			require.NotContains(t, have.stderr, "hunter2")
			require.NotContains(t, have.stderr, token)
		})
	}
}
