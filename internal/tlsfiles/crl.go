package tlsfiles

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"time"
)

// revocations is the set of revoked certificates, by issuer and serial number.
type revocations map[string]struct{}

func revocationKey(issuer, serial []byte) string { return string(issuer) + "\x00" + string(serial) }

// parseRevocations reads the revocation lists in a file. One of the authorities must have signed
// each list.
func parseRevocations(path string, data []byte, authorities []*x509.Certificate, log *slog.Logger) (revocations, error) {
	lists := derLists(data)
	if len(lists) == 0 {
		return nil, fmt.Errorf("%s: there is no revocation list in it", path)
	}
	revoked := revocations{}
	for _, der := range lists {
		list, err := x509.ParseRevocationList(der)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if !signedByOne(list, authorities) {
			return nil, fmt.Errorf("%s: the revocation list of %q is not signed by any of the authorities", path, list.Issuer)
		}
		if !list.NextUpdate.IsZero() && time.Now().After(list.NextUpdate) {
			log.Warn(fmt.Sprintf("TLS: the revocation list in %s should have been replaced by %s; it stays in use",
				path, list.NextUpdate.UTC().Format(time.RFC3339)))
		}
		for _, e := range list.RevokedCertificateEntries {
			revoked[revocationKey(list.RawIssuer, e.SerialNumber.Bytes())] = struct{}{}
		}
	}
	return revoked, nil
}

// derLists returns the lists of a PEM file, or the file itself if it is DER.
func derLists(data []byte) [][]byte {
	var lists [][]byte
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "X509 CRL" {
			lists = append(lists, block.Bytes)
		}
	}
	const derSequence = 0x30
	if len(lists) == 0 && len(data) > 0 && data[0] == derSequence {
		return [][]byte{data}
	}
	return lists
}

func signedByOne(list *x509.RevocationList, authorities []*x509.Certificate) bool {
	for _, ca := range authorities {
		if bytes.Equal(ca.RawSubject, list.RawIssuer) && list.CheckSignatureFrom(ca) == nil {
			return true
		}
	}
	return false
}

// check returns nil if one of the chains has no revoked certificate.
func (r revocations) check(chains [][]*x509.Certificate) error {
	var err error
	for _, chain := range chains {
		if err = r.checkChain(chain); err == nil {
			return nil
		}
	}
	return err
}

func (r revocations) checkChain(chain []*x509.Certificate) error {
	for _, c := range chain {
		if _, found := r[revocationKey(c.RawIssuer, c.SerialNumber.Bytes())]; found {
			return fmt.Errorf("the certificate %q with the serial number %X is revoked", c.Subject, c.SerialNumber)
		}
	}
	return nil
}
