package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// ExpiresSoon is for how long a certificate must still be valid; with less, its owner is warned.
const ExpiresSoon = 14 * 24 * time.Hour

// ServerOptions of a Server.
type ServerOptions struct {
	Files         // Cert and Key are required, CRL requires CA
	Optional bool // with CA: clients may connect without a certificate
	Logger   *slog.Logger
}

// Server makes the TLS configuration of a server. Many goroutines may use it.
type Server struct {
	files reloader[serverState]
}

// serverState is the value made from the files. It does not change.
type serverState struct {
	config  *tls.Config
	roots   *x509.CertPool // nil: clients are not asked for certificates
	revoked revocations
}

// NewServer reads the files. Unusable files are an error. The log warns of a certificate that has
// expired or will do so soon.
func NewServer(o ServerOptions) (*Server, error) {
	switch {
	case o.Cert == "" || o.Key == "":
		return nil, errors.New("a certificate and its key are needed")
	case o.CRL != "" && o.CA == "":
		return nil, errors.New("a revocation list needs the certificates of the authorities that have signed it")
	}
	s := &Server{}
	log := orSilent(o.Logger)
	s.files = reloader[serverState]{files: o.Files, log: log}
	s.files.make = func(all contents) (serverState, error) { return makeServer(o, all, log) }
	return s, s.files.open()
}

// Config returns the configuration for listeners and tls.Server. Each handshake uses the content
// that the files have at that time.
func (s *Server) Config() *tls.Config {
	return &tls.Config{
		MinVersion: MinVersion,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return s.files.current().config, nil
		},
	}
}

// Refresh looks at the files now. It reports whether new content is in use.
func (s *Server) Refresh() bool { return s.files.refresh() }

// Generation returns a value that is different after each change of the files' content.
func (s *Server) Generation() any { return s.files.latest.Load() }

// Verify returns nil if a client with this certificate may connect now. certs is the certificate,
// followed by intermediate ones.
func (s *Server) Verify(certs []*x509.Certificate) error { return s.files.latest.Load().verify(certs) }

// Expires returns when the certificate in use ends.
func (s *Server) Expires() time.Time {
	return s.files.latest.Load().config.Certificates[0].Leaf.NotAfter
}

func makeServer(o ServerOptions, all contents, log *slog.Logger) (st serverState, err error) {
	pair, err := keyPair(o.Files, all)
	if err != nil {
		return st, err
	}
	warnOfEnd(log, o.Cert, pair.Leaf)
	st.config = &tls.Config{
		MinVersion:   MinVersion,
		Certificates: []tls.Certificate{pair},
		// Record sizing is for pages that are shown before they have arrived.
		DynamicRecordSizingDisabled: true,
	}
	if o.CA == "" {
		return st, nil
	}
	authorities, err := parseCertificates(o.CA, all[o.CA])
	if err != nil {
		return st, err
	}
	if o.CRL != "" {
		if st.revoked, err = parseRevocations(o.CRL, all[o.CRL], authorities, log); err != nil {
			return st, err
		}
	}
	st.roots = pool(authorities)
	st.config.ClientCAs, st.config.ClientAuth = st.roots, tls.RequireAndVerifyClientCert
	if o.Optional {
		st.config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	st.config.VerifyConnection = st.verifyConnection
	return st, nil
}

// verifyConnection is called after each handshake. crypto/tls has verified the certificate, except
// when it resumed a session: then the certificate is verified here.
func (st *serverState) verifyConnection(c tls.ConnectionState) error {
	switch {
	case len(c.PeerCertificates) == 0:
		return nil
	case c.DidResume:
		return st.verify(c.PeerCertificates)
	}
	return st.revoked.check(c.VerifiedChains)
}

func (st *serverState) verify(certs []*x509.Certificate) error {
	if st.roots == nil || len(certs) == 0 {
		return nil
	}
	between := pool(certs[1:])
	chains, err := certs[0].Verify(x509.VerifyOptions{
		Roots: st.roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return err
	}
	return st.revoked.check(chains)
}

func warnOfEnd(log *slog.Logger, path string, leaf *x509.Certificate) {
	end := leaf.NotAfter.UTC().Format(time.RFC3339)
	switch left := time.Until(leaf.NotAfter); {
	case left < 0:
		log.Warn(fmt.Sprintf("TLS: the certificate in %s has expired on %s: clients will refuse it, put a new one in its place", path, end))
	case left < ExpiresSoon:
		log.Warn(fmt.Sprintf("TLS: the certificate in %s expires on %s", path, end))
	}
	if time.Now().Before(leaf.NotBefore) {
		log.Warn(fmt.Sprintf("TLS: the certificate in %s is valid from %s on only", path, leaf.NotBefore.UTC().Format(time.RFC3339)))
	}
}
