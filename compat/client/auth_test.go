package client_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"gotycoon/access"
	"gotycoon/client"
	"gotycoon/server"
)

func TestCredentials(t *testing.T) {
	const token = "0123456789abcdef"
	hash, err := bcrypt.GenerateFromPassword([]byte("sec:ret"), bcrypt.MinCost)
	require.NoError(t, err)
	digest, err := access.HashToken([]byte(token))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "access")
	text := "anna:" + string(hash) + "\ntoken ci " + digest + "\nallow anna read,write\nallow ci read"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	cfg := server.DefaultConfig()
	cfg.Access.Path = path
	s := startServer(cfg)
	defer s.stop()

	with := func(who client.Credentials) *client.DB {
		c := client.New(s.addr, client.Options{Credentials: who})
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		return c.DB("")
	}
	anna := with(client.Credentials{User: "anna", Password: "sec:ret"})
	require.NoError(t, anna.Set(t.Context(), "a", []byte("b"), client.Never))
	for record, err := range anna.All(t.Context()) { // on a connection of its own
		require.NoError(t, err)
		require.Equal(t, "a", record.Key)
	}
	ci := with(client.Credentials{User: "ignored", Token: token})
	value, err := ci.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "b", string(value))
	err = ci.Set(t.Context(), "a", nil, client.Never)
	require.ErrorIs(t, err, client.ErrDenied)
	require.ErrorContains(t, err, "ci has no right to write")
	for _, who := range []client.Credentials{{}, {User: "anna", Password: "no"}, {Token: "no"}} {
		db := with(who)
		for range 2 { // the server ends the connection of a stranger, and the client makes another
			_, err = db.Get(t.Context(), "a")
			require.ErrorIs(t, err, client.ErrDenied)
			require.NotErrorIs(t, err, client.ErrNoRecord)
		}
	}
	_, err = with(client.Credentials{Token: "a\r\nb"}).Get(t.Context(), "a")
	require.ErrorContains(t, err, "control characters")
}
