package remote_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOptionsOfTheServer(t *testing.T) {
	require.Equal(t, "max-size\t1g\tcommand line\tnow\nport\t0\tdefault\tnext start\n", succeed(t, "", "config", "get"))
	require.Equal(t, "max-size is 2 GB now; after the next start: no: start the server with -max-size '2 GB'\n", succeed(t, "", "config", "set", "max-size", "2 GB"))
	require.Equal(t, "2 GB\n", succeed(t, "", "config", "get", "max-size"))
	require.JSONEq(t, `{"name":"max-size","value":"2 GB","source":"config set","running":true,"secret":false}`, succeed(t, "", "config", "-json", "get", "max-size"))
	require.Equal(t, "max-size is 1g now; after the next start too\n", succeed(t, "", "config", "set", "max-size", "1g"))
	require.JSONEq(t, `{"lasts":"yes"}`, succeed(t, "", "config", "-json", "set", "max-size", "1g"))

	for text, args := range map[string][]string{
		"port cannot be changed while the server runs: give the server the option -port": {"set", "port", "1"},
		`there is no option "x"`:                  {"get", "x"},
		"must be get, get NAME or set NAME VALUE": {"set", "max-size"},
		"an argument is missing":                  {},
	} {
		r := command(t, "", at("config", args...)...)
		require.Equal(t, 1, r.exit)
		require.Contains(t, r.stderr, text)
	}
}

// Options may tell where secrets are: clients that may only write do not see them.
func TestOptionsAreForAdmins(t *testing.T) {
	port, password := guardedServer(t, "0123456789abcdef"), write(t, "password", "hunter2")
	for _, args := range [][]string{{"get"}, {"set", "max-size", "1g"}} {
		r := command(t, "", append([]string{"config", "-port", port, "-user", "anna", "-password-file", password}, args...)...)
		require.Equal(t, 1, r.exit)
		require.Contains(t, r.stderr, "access denied: ")
	}
}
