package tlsfiles_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/tlsfiles"
	"gotycoon/internal/tlsfiles/testca"
)

func TestBothSidesTrustWhatTheirAuthorityHasSigned(t *testing.T) {
	ca := newCA(t, t.TempDir(), "ca")
	issueServer(t, ca)
	trusting := clientConfig(t, tlsfiles.ClientOptions{Files: tlsfiles.Files{CA: ca.Path("ca.pem")}})
	_, serverErr, clientErr := shake(t, server(t, tlsfiles.ServerOptions{Files: files(ca)}).Config(), trusting)
	require.NoError(t, serverErr)
	require.NoError(t, clientErr)

	stranger := newCA(t, t.TempDir(), "ca")
	distrusting := clientConfig(t, tlsfiles.ClientOptions{Files: tlsfiles.Files{CA: stranger.Path("ca.pem")}})
	_, _, clientErr = shake(t, server(t, tlsfiles.ServerOptions{Files: files(ca)}).Config(), distrusting)
	require.ErrorContains(t, clientErr, "unknown authority")
}

func TestClientsCheckNameAndTime(t *testing.T) {
	ca := newCA(t, t.TempDir(), "ca")
	trust := tlsfiles.Files{CA: ca.Path("ca.pem")}
	issueServer(t, ca)
	config := server(t, tlsfiles.ServerOptions{Files: files(ca)}).Config()
	_, _, err := shake(t, config, clientConfig(t, tlsfiles.ClientOptions{Files: trust, ServerName: "other.example"}))
	require.ErrorContains(t, err, "other.example")

	issue(t, ca, testca.Spec{Name: "server", Hosts: []string{"localhost"}, Expired: true})
	var l log
	config = server(t, tlsfiles.ServerOptions{Files: files(ca), Logger: l.logger()}).Config()
	require.Contains(t, l.String(), "has expired")
	_, _, err = shake(t, config, clientConfig(t, tlsfiles.ClientOptions{Files: trust}))
	require.ErrorContains(t, err, "expired")
}

// TestClientCertificates shows who is let in.
func TestClientCertificates(t *testing.T) {
	dir := t.TempDir()
	ca := newCA(t, dir, "ca")
	issueServer(t, ca)
	issue(t, ca, testca.Spec{Name: "good", Client: true})
	issue(t, ca, testca.Spec{Name: "late", Client: true, Expired: true})
	issue(t, ca, testca.Spec{Name: "noclient", Hosts: []string{"localhost"}})
	revoked := issue(t, ca, testca.Spec{Name: "revoked", Client: true})
	require.NoError(t, ca.Revoke("crl.pem", revoked))
	stranger := newCA(t, t.TempDir(), "ca")
	issue(t, stranger, testca.Spec{Name: "stranger", Client: true})

	asking := files(ca)
	asking.CA, asking.CRL = ca.Path("ca.pem"), ca.Path("crl.pem")
	for _, c := range []struct {
		name, path, required, optional string
	}{
		{"good", ca.Path("good"), "", ""},
		{"none", "", "client didn't provide a certificate", ""},
		{"expired", ca.Path("late"), "expired", "expired"},
		{"of a server", ca.Path("noclient"), "incompatible key usage", "incompatible key usage"},
		{"revoked", ca.Path("revoked"), "is revoked", "is revoked"},
		{"of another authority", stranger.Path("stranger"), "didn't provide|unknown authority", "unknown authority|^$"},
	} {
		for optional, want := range map[bool]string{false: c.required, true: c.optional} {
			s := server(t, tlsfiles.ServerOptions{Files: asking, Optional: optional})
			o := tlsfiles.ClientOptions{Files: tlsfiles.Files{CA: ca.Path("ca.pem")}}
			if c.path != "" {
				o.Cert, o.Key = c.path+".pem", c.path+".key"
			}
			_, serverErr, clientErr := shake(t, s.Config(), clientConfig(t, o))
			if want == "" {
				require.NoError(t, serverErr, c.name)
				require.NoError(t, clientErr, c.name)
				continue
			}
			text := ""
			if serverErr != nil {
				text = serverErr.Error()
				require.Error(t, clientErr, c.name)
			}
			require.Regexp(t, want, text, "%s optional=%t", c.name, optional)
		}
	}
}

func TestResumedSessionsAreCheckedAgain(t *testing.T) {
	ca := newCA(t, t.TempDir(), "ca")
	issueServer(t, ca)
	serial := issue(t, ca, testca.Spec{Name: "user", Client: true})
	require.NoError(t, ca.Revoke("crl.pem"))
	asking := files(ca)
	asking.CA, asking.CRL = ca.Path("ca.pem"), ca.Path("crl.pem")
	s := server(t, tlsfiles.ServerOptions{Files: asking})
	config := s.Config()
	client := clientConfig(t, tlsfiles.ClientOptions{
		Files: tlsfiles.Files{CA: ca.Path("ca.pem"), Cert: ca.Path("user.pem"), Key: ca.Path("user.key")}})
	for i := range 2 {
		state, serverErr, clientErr := shake(t, config, client)
		require.NoError(t, serverErr)
		require.NoError(t, clientErr)
		require.Equal(t, i == 1, state.DidResume)
	}
	require.NoError(t, ca.Revoke("crl.pem", serial))
	require.True(t, s.Refresh())
	_, serverErr, _ := shake(t, config, client)
	require.ErrorContains(t, serverErr, "is revoked")
	require.ErrorContains(t, s.Verify([]*x509.Certificate{parse(t, ca.Path("user"))}), "is revoked")
}

func TestListsInDER(t *testing.T) {
	ca := newCA(t, t.TempDir(), "ca")
	issueServer(t, ca)
	serial := issue(t, ca, testca.Spec{Name: "user", Client: true})
	require.NoError(t, ca.Revoke("crl.pem", serial))
	text, err := os.ReadFile(ca.Path("crl.pem"))
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	write(t, ca.Path("crl.der"), string(block.Bytes))
	asking := files(ca)
	asking.CA, asking.CRL = ca.Path("ca.pem"), ca.Path("crl.der")
	s := server(t, tlsfiles.ServerOptions{Files: asking})
	require.ErrorContains(t, s.Verify([]*x509.Certificate{parse(t, ca.Path("user"))}), "is revoked")
}

// TestErrorsSayWhatIsWrong shows what a user reads.
func TestErrorsSayWhatIsWrong(t *testing.T) {
	ca := newCA(t, t.TempDir(), "ca")
	issueServer(t, ca)
	issue(t, ca, testca.Spec{Name: "other", Client: true})
	write(t, ca.Path("empty"), "")
	write(t, ca.Path("locked.key"), "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
	stranger := newCA(t, t.TempDir(), "stranger")
	require.NoError(t, stranger.Revoke("crl.pem"))
	good := files(ca)
	for want, change := range map[string]func(*tlsfiles.Files){
		"a certificate and its key are needed":                     func(f *tlsfiles.Files) { f.Key = "" },
		"no such file":                                             func(f *tlsfiles.Files) { f.Key = ca.Path("none") },
		"does not fit the certificate in":                          func(f *tlsfiles.Files) { f.Key = ca.Path("other.key") },
		"server.pem: there is no private key":                      func(f *tlsfiles.Files) { f.Key = f.Cert },
		"empty: there is no certificate":                           func(f *tlsfiles.Files) { f.Cert = ca.Path("empty") },
		"locked.key: the key is encrypted":                         func(f *tlsfiles.Files) { f.Key = ca.Path("locked.key") },
		"server.key: there is no certificate":                      func(f *tlsfiles.Files) { f.CA = f.Key },
		"a revocation list needs":                                  func(f *tlsfiles.Files) { f.CRL = f.Cert },
		"server.pem: there is no revocation list":                  func(f *tlsfiles.Files) { f.CA, f.CRL = ca.Path("ca.pem"), f.Cert },
		`of "CN=stranger" is not signed by any of the authorities`: func(f *tlsfiles.Files) { f.CA, f.CRL = ca.Path("ca.pem"), stranger.Path("crl.pem") },
	} {
		f := good
		change(&f)
		_, err := tlsfiles.NewServer(tlsfiles.ServerOptions{Files: f})
		require.ErrorContains(t, err, want)
	}
	_, err := tlsfiles.NewClient(tlsfiles.ClientOptions{Files: tlsfiles.Files{Cert: good.Cert}})
	require.ErrorContains(t, err, "belong together")
}
