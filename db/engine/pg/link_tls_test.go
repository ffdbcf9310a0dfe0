package pg_test

import (
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine/pg"
	"gotycoon/db/engine/pg/pgtest"
	"gotycoon/internal/tlsfiles/testca"
)

// What protects the way to PostgreSQL, and whether it takes updates, is told before anybody trusts
// it.
func TestHowTheConnectionIsProtected(t *testing.T) {
	p := pgtest.Own(t)
	ca, err := testca.New(t.TempDir(), "ca")
	require.NoError(t, err)
	_, err = ca.Issue(testca.Spec{Name: "server", Hosts: []string{"localhost", "127.0.0.1"}})
	require.NoError(t, err)
	owner, err := os.Stat(p.Dir())
	require.NoError(t, err)
	who := owner.Sys().(*syscall.Stat_t)
	for _, name := range []string{"server.pem", "server.key"} { // in a directory that PostgreSQL may read
		text, err := os.ReadFile(ca.Path(name))
		require.NoError(t, err)
		file := filepath.Join(p.Dir(), name)
		require.NoError(t, os.WriteFile(file, text, 0o600))
		require.NoError(t, os.Chown(file, int(who.Uid), int(who.Gid)))
	}
	where := pgtest.Database(t, p)
	initialise(t, where)
	with := func(more url.Values) string {
		u, err := url.Parse(where)
		require.NoError(t, err)
		u.RawQuery = more.Encode()
		return u.String()
	}
	is := func(want string, more url.Values) {
		t.Helper()
		s, err := pg.ReadStatus(t.Context(), with(more))
		require.NoError(t, err)
		require.Regexp(t, "^"+want+"$", s.Link)
		require.False(t, s.ReadOnly)
	}
	is("not encrypted", url.Values{"sslmode": {"prefer"}})
	require.NoError(t, p.Configure("ssl = on", "ssl_cert_file = '"+filepath.Join(p.Dir(), "server.pem")+"'", "ssl_key_file = '"+filepath.Join(p.Dir(), "server.key")+"'"))
	require.Eventually(t, func() bool {
		c, err := pgx.Connect(t.Context(), with(url.Values{"sslmode": {"require"}}))
		return err == nil && c.Close(t.Context()) == nil
	}, 20*time.Second, 10*time.Millisecond)
	root := ca.Path("ca.pem")
	is("encrypted, TLS 1.3, but anybody could be at the other end: .*", url.Values{"sslmode": {"prefer"}})
	is("encrypted, TLS 1.3, the certificate is checked, its name is not", url.Values{"sslmode": {"verify-ca"}, "sslrootcert": {root}})
	is("encrypted, TLS 1.3, certificate and name are checked", url.Values{"sslmode": {"verify-full"}, "sslrootcert": {root}})
	is("not encrypted", url.Values{"sslmode": {"disable"}})

	s, err := pg.ReadStatus(t.Context(), with(url.Values{"sslmode": {"require"}, "default_transaction_read_only": {"on"}}))
	require.NoError(t, err)
	require.True(t, s.ReadOnly)
	_, err = pg.Open(t.Context(), with(url.Values{"default_transaction_read_only": {"on"}}), pg.Options{})
	require.ErrorContains(t, pg.Advise(err), "default_transaction_read_only")
}
