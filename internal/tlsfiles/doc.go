// Package tlsfiles makes configurations of crypto/tls from files: certificate, key, certificate authorities, revocation list. When the
// content of the files changes, handshakes from then on use the new one. Content that cannot be used is told in the log, and what
// was there before stays in use.
//
//	s, err := tlsfiles.NewServer(tlsfiles.ServerOptions{Files: tlsfiles.Files{Cert: "server.pem", Key: "server.key"}})
//	l = tls.NewListener(l, s.Config())
//
// Nothing here runs by itself: the files are looked at by handshakes, at most once a second, and by Refresh.
package tlsfiles

import (
	"crypto/tls"
	"log/slog"
)

// MinVersion is the oldest version of TLS that is spoken.
const MinVersion = tls.VersionTLS12

// Files are paths of files in PEM. An empty path means none.
type Files struct {
	Cert string // a certificate, followed by those between it and the authority
	Key  string // its private key, not encrypted
	CA   string // certificates of the authorities that vouch for the other side
	CRL  string // revocation lists of those authorities, PEM or DER; for servers
}

// paths are the files that there are.
func (f Files) paths() []string {
	var paths []string
	for _, path := range []string{f.Cert, f.Key, f.CA, f.CRL} {
		if path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

func orSilent(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
