// Package tlsfiles makes configurations of crypto/tls from files: certificate, key, certificate
// authorities, revocation list. When the content of the files changes, later handshakes use the new
// content. If the new content cannot be used, the log says so, and the former content stays in use.
//
//	files := tlsfiles.Files{Cert: "server.pem", Key: "server.key"}
//	s, err := tlsfiles.NewServer(tlsfiles.ServerOptions{Files: files})
//	l = tls.NewListener(l, s.Config())
//
// The package has no goroutine: handshakes look at the files, at most once a second, and so does
// Refresh.
package tlsfiles

import (
	"crypto/tls"
	"log/slog"
)

// MinVersion is the oldest supported version of TLS.
const MinVersion = tls.VersionTLS12

// Files are paths of PEM files. An empty path means no file.
type Files struct {
	Cert string // a certificate, followed by intermediate certificates
	Key  string // its private key, not encrypted
	CA   string // certificates of the authorities that sign the other side's certificate
	CRL  string // revocation lists of these authorities, PEM or DER; for servers
}

// paths returns the paths that are not empty.
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
