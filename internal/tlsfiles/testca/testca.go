// Package testca makes certificates for tests and measurements: an authority, and what it signs.
package testca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	day   = 24 * time.Hour
	month = 30 * day
)

// CA is an authority that writes what it makes to a directory. It belongs to one goroutine.
type CA struct {
	dir     string
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	serial  int64
	revoked []x509.RevocationListEntry
	number  int64
}

// Spec says what a certificate is.
type Spec struct {
	Name    string        // common name, and the name of the files: NAME.pem and NAME.key
	Hosts   []string      // names and addresses of a server
	Client  bool          // for a client; otherwise for a server
	Expired bool          // since yesterday
	Life    time.Duration // 0 means 30 days
}

// New makes an authority, whose certificate is in NAME.pem.
func New(dir, name string) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-2 * day), NotAfter: time.Now().Add(month), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	ca := &CA{dir: dir, key: key, serial: 1}
	if ca.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return ca, write(ca.Path(name+".pem"), "CERTIFICATE", der)
}

// Path returns the path of a file of the directory.
func (ca *CA) Path(name string) string { return filepath.Join(ca.dir, name) }

// Issue makes a certificate and returns its serial number.
func (ca *CA) Issue(s Spec) (serial int64, err error) {
	ca.serial++
	t := &x509.Certificate{
		SerialNumber: big.NewInt(ca.serial), Subject: pkix.Name{CommonName: s.Name},
		NotBefore: time.Now().Add(-2 * day), NotAfter: time.Now().Add(month),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if s.Client {
		t.ExtKeyUsage[0] = x509.ExtKeyUsageClientAuth
	}
	if s.Life != 0 {
		t.NotAfter = time.Now().Add(s.Life)
	}
	if s.Expired {
		t.NotAfter = time.Now().Add(-day)
	}
	for _, host := range s.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	return ca.serial, ca.sign(t, s.Name)
}

func (ca *CA) sign(t *x509.Certificate, name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, t, ca.cert, key.Public(), ca.key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(write(ca.Path(name+".pem"), "CERTIFICATE", der), write(ca.Path(name+".key"), "PRIVATE KEY", secret))
}

// Revoke writes a revocation list to FILE with all certificates that were revoked so far, and with
// these.
func (ca *CA) Revoke(file string, serials ...int64) error {
	for _, n := range serials {
		ca.revoked = append(ca.revoked, x509.RevocationListEntry{SerialNumber: big.NewInt(n), RevocationTime: time.Now()})
	}
	ca.number++
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(ca.number), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(day), RevokedCertificateEntries: ca.revoked,
	}, ca.cert, ca.key)
	if err != nil {
		return err
	}
	return write(ca.Path(file), "X509 CRL", der)
}

// write replaces a file as a whole.
func write(path, kind string, der []byte) error {
	data := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
