package tlsport

import (
	"crypto/tls"
	"net"
)

// Peer is the identity in a client certificate.
type Peer struct {
	CommonName string   // of the subject
	DNSNames   []string // subject alternative names
	URIs       []string
	Serial     string // number of the certificate, hexadecimal
}

// PeerOf returns the identity of the other side of a connection. ok is false without TLS, and
// without a verified certificate.
func PeerOf(c net.Conn) (p Peer, ok bool) {
	secure, ok := c.(interface{ ConnectionState() tls.ConnectionState })
	if !ok {
		return p, false
	}
	state := secure.ConnectionState()
	if len(state.VerifiedChains) == 0 {
		return p, false
	}
	leaf := state.VerifiedChains[0][0]
	p = Peer{CommonName: leaf.Subject.CommonName, DNSNames: leaf.DNSNames, Serial: leaf.SerialNumber.Text(16)}
	for _, u := range leaf.URIs {
		p.URIs = append(p.URIs, u.String())
	}
	return p, true
}
