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
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"strings"
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

// keyPair returns the certificate and the key of the files.
func keyPair(f Files, all contents) (pair tls.Certificate, err error) {
	if pair, err = tls.X509KeyPair(all[f.Cert], all[f.Key]); err == nil {
		return pair, nil
	}
	if _, err := parseCertificates(f.Cert, all[f.Cert]); err != nil {
		return pair, err
	}
	switch kind := firstKey(all[f.Key]); {
	case kind == "":
		return pair, fmt.Errorf("%s: there is no private key in PEM in it", f.Key)
	case strings.Contains(kind, "ENCRYPTED") || bytes.Contains(all[f.Key], []byte("Proc-Type: 4,ENCRYPTED")):
		return pair, fmt.Errorf("%s: the key is encrypted, but nobody can type its password: store the key unencrypted, readable for the server only", f.Key)
	}
	return pair, fmt.Errorf("the key in %s does not fit the certificate in %s: %w", f.Key, f.Cert, err)
}

// firstKey returns the type of the first PEM block with a private key, "" if there is none.
func firstKey(data []byte) string {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return block.Type
		}
	}
	return ""
}

// parseCertificates reads all certificates of a file. A file without a certificate is an error.
func parseCertificates(path string, data []byte) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, cert)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: there is no certificate in PEM in it", path)
	}
	return list, nil
}

func pool(certs []*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range certs {
		p.AddCert(c)
	}
	return p
}
