package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// aboutAccess runs a command about access files.
func aboutAccess(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = runAccess(args, strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

func TestAccessCommands(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "access")
	_, hash, _ := aboutAccess("secret\n", "hash", "anna")
	require.Regexp(t, `^anna:\$2a\$10\$.{53}\n$`, hash)
	_, bare, _ := aboutAccess("secret", "hash")
	require.Regexp(t, `^\$2a\$10\$.{53}\n$`, bare)
	_, token, _ := aboutAccess("0123456789abcdef\r\n", "token", "ci")
	require.Equal(t, "token ci 9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f\n", token)
	require.NoError(t, os.WriteFile(file, []byte(hash+token+"allow anna read\n"), 0o600))
	code, out, _ := aboutAccess("", "check", file)
	require.Zero(t, code)
	require.Equal(t, file+": 1 users with a password, 1 tokens, 0 certificates, 1 rules\n", out)
	require.NoError(t, os.WriteFile(file, []byte("allow anna read\n"), 0o600))
	for _, row := range []struct {
		want string
		args []string
	}{
		{`"anna" is allowed something`, []string{"check", file}},
		{"no such file", []string{"check", filepath.Join(dir, "none")}},
		{"the password is empty", []string{"hash"}},
		{"at least 16", []string{"token", "ci"}},
		{"usage:", nil},
		{"usage:", []string{"check"}},
		{"usage:", []string{"hash", "a", "b"}},
	} {
		code, out, stderr := aboutAccess("", row.args...)
		require.Equal(t, 1, code)
		require.Empty(t, out)
		require.Contains(t, stderr, row.want)
	}
}

// The signal USR1, and HUP of a daemon, reads the access file at once.
func TestAccessFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("allow anyone read from=local\n")
	s := start(t, "-access", path, "-ls", ":")
	require.Contains(t, s.get("/rpc/report"), "serv_proc_id")
	write("allow anyone write from=local\n")
	s.signal(syscall.SIGUSR1)
	require.Eventually(t, func() bool { return strings.Contains(s.get("/rpc/report"), "access denied") }, patience, 5*time.Millisecond)
	s.signal(syscall.SIGTERM)
	require.Zero(t, s.exitCode())
	require.Contains(t, strings.Join(s.log("log"), "\n"), "the access file has been read again")
}
