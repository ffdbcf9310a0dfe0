package cluster

import (
	"path/filepath"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/tlsfiles/testca"
	"gotycoon/server"
)

// secure has the members speak TLS with each other. Clients go on in plaintext.
func (c *cluster) secure() {
	c.t.Helper()
	c.certs = c.t.TempDir()
	ca, err := testca.New(c.certs, "ca")
	require.NoError(c.t, err)
	for _, s := range []testca.Spec{{Name: "server", Hosts: []string{"127.0.0.1"}}, {Name: "member", Client: true}} {
		_, err := ca.Issue(s)
		require.NoError(c.t, err)
	}
}

// certificates are the options of a member that finds them in a directory.
func certificates(dir string) server.TLSConfig {
	path := func(name string) string { return filepath.Join(dir, name) }
	return server.TLSConfig{
		Cert: path("server.pem"), Key: path("server.key"), CA: path("ca.pem"), Client: server.TLSOptional, Mode: server.TLSAllowed,
		MasterCA: path("ca.pem"), MasterCert: path("member.pem"), MasterKey: path("member.key"),
	}
}
