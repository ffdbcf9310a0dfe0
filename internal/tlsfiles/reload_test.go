package tlsfiles_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/tlsfiles"
)

// presented is the serial number of the certificate that a handshake gets.
func presented(t *testing.T, s *tlsfiles.Server, client *tlsfiles.Client) int64 {
	t.Helper()
	state, serverErr, clientErr := shake(t, s.Config(), client.Config("localhost"))
	require.NoError(t, serverErr)
	require.NoError(t, clientErr)
	return state.PeerCertificates[0].SerialNumber.Int64()
}

func TestNewContentIsUsedByTheNextHandshakes(t *testing.T) {
	ca := newCA(t, t.TempDir(), "ca")
	first := issueServer(t, ca)
	var l log
	s := server(t, tlsfiles.ServerOptions{Files: files(ca), Logger: l.logger()})
	client, err := tlsfiles.NewClient(tlsfiles.ClientOptions{Files: tlsfiles.Files{CA: ca.Path("ca.pem")}})
	require.NoError(t, err)
	require.Equal(t, first, presented(t, s, client))
	version := s.Generation()
	require.False(t, s.Refresh(), "nothing has changed")
	require.Equal(t, version, s.Generation())

	second := issueServer(t, ca)
	require.Eventually(t, func() bool { return presented(t, s, client) == second }, patience, 50*time.Millisecond)
	require.NotEqual(t, version, s.Generation())
	require.Contains(t, l.String(), "new content is in use")
}

func TestTheSameContentAgainIsNothingNew(t *testing.T) {
	ca := newCA(t, t.TempDir(), "ca")
	issueServer(t, ca)
	s := server(t, tlsfiles.ServerOptions{Files: files(ca)})
	text, err := os.ReadFile(ca.Path("server.pem"))
	require.NoError(t, err)
	write(t, ca.Path("server.pem"), string(text))
	require.False(t, s.Refresh())
}

func TestWhatCannotBeUsedKeepsWhatThereWas(t *testing.T) {
	ca := newCA(t, t.TempDir(), "ca")
	first := issueServer(t, ca)
	var l log
	s := server(t, tlsfiles.ServerOptions{Files: files(ca), Logger: l.logger()})
	client, err := tlsfiles.NewClient(tlsfiles.ClientOptions{Files: tlsfiles.Files{CA: ca.Path("ca.pem")}})
	require.NoError(t, err)

	key, err := os.ReadFile(ca.Path("server.key"))
	require.NoError(t, err)
	second := issueServer(t, ca)
	newKey, err := os.ReadFile(ca.Path("server.key"))
	require.NoError(t, err)
	write(t, ca.Path("server.key"), string(key)) // the new certificate with the old key
	require.False(t, s.Refresh())
	require.Empty(t, l.String(), "the key may be on its way")
	for range 3 {
		require.False(t, s.Refresh())
	}
	require.Equal(t, 1, strings.Count(l.String(), "stays in use"), "it is said once: %s", l.String())
	require.Contains(t, l.String(), "does not fit")
	require.Equal(t, first, presented(t, s, client))

	require.NoError(t, os.Remove(ca.Path("server.key")))
	require.False(t, s.Refresh())
	require.Contains(t, l.String(), "no such file")
	require.Equal(t, first, presented(t, s, client))

	write(t, ca.Path("server.key"), string(newKey))
	require.True(t, s.Refresh())
	require.Equal(t, second, presented(t, s, client))
}
