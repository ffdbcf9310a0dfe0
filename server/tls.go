package server

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"gotycoon/internal/tlsfiles"
	"gotycoon/internal/tlsport"
)

// Values of TLSConfig.
const (
	TLSRequired = "required"
	TLSAllowed  = "allowed"
	TLSOptional = "optional"
)

// TLSConfig is the encryption of all ports, and of the connection to a master. Without Cert and Key
// all ports speak plaintext.
type TLSConfig struct {
	Cert      string // file of the certificate and the certificates up to its authority (-tls-cert)
	Key       string // file of its key (-tls-key)
	CA        string // file of the clients' authorities (-tls-ca); empty: clients are not asked
	Client    string // with CA: TLSRequired, as when it is empty, or TLSOptional (-tls-client)
	CRL       string // file of the revocation lists of these authorities (-tls-crl); empty: none
	Mode      string // TLSRequired, as when it is empty, or TLSAllowed: plaintext too (-tls)
	PlainPort int    // plaintext port for databases beside Config.Port (-plain-port); 0: none

	MasterTLS  bool   // speak TLS with the master (-master-tls), implied by the options below
	MasterCA   string // file of the master's authorities (-master-tls-ca); empty: the system's
	MasterCert string // file of the certificate to show the master (-master-tls-cert); empty: none
	MasterKey  string // file of its key (-master-tls-key)
	MasterName string // in the master's certificate (-master-tls-name); empty: the master's host
}

// on reports whether the ports speak TLS.
func (c *TLSConfig) on() bool { return c.Cert != "" || c.Key != "" }

// toMaster reports whether the connection to a master speaks TLS.
func (c *TLSConfig) toMaster() bool {
	return c.MasterTLS || c.MasterCA != "" || c.MasterCert != "" || c.MasterKey != "" || c.MasterName != ""
}

// paths are the paths that must be absolute in a daemon.
func (c *TLSConfig) paths() []string {
	return []string{c.Cert, c.Key, c.CA, c.CRL, c.MasterCA, c.MasterCert, c.MasterKey}
}

// check finds what is wrong with the options, and with the files.
func (c *TLSConfig) check() error {
	switch {
	case c.on() && (c.Cert == "" || c.Key == ""):
		return errors.New("-tls-cert and -tls-key belong together")
	case !c.on() && (c.CA != "" || c.CRL != "" || c.Client != "" || c.Mode != "" || c.PlainPort != 0):
		return errors.New("-tls, -tls-ca, -tls-client, -tls-crl and -plain-port need a certificate: -tls-cert and -tls-key")
	case c.CA == "" && (c.CRL != "" || c.Client != ""):
		return errors.New("-tls-client and -tls-crl need the authorities of the clients: -tls-ca")
	case c.Mode != "" && c.Mode != TLSRequired && c.Mode != TLSAllowed:
		return fmt.Errorf("-tls is required or allowed, not %q", c.Mode)
	case c.Client != "" && c.Client != TLSRequired && c.Client != TLSOptional:
		return fmt.Errorf("-tls-client is required or optional, not %q", c.Client)
	case c.PlainPort < 0 || c.PlainPort > MaxPort:
		return fmt.Errorf("-plain-port: a port is at most %d", MaxPort)
	}
	if c.on() {
		if _, err := c.server(nil); err != nil {
			return fmt.Errorf("TLS: %w", err)
		}
	}
	if c.toMaster() {
		if _, err := c.client(nil); err != nil {
			return fmt.Errorf("TLS to the master: %w", err)
		}
	}
	return nil
}

// server reads the files of the ports.
func (c *TLSConfig) server(log *slog.Logger) (*tlsfiles.Server, error) {
	return tlsfiles.NewServer(tlsfiles.ServerOptions{
		Files:    tlsfiles.Files{Cert: c.Cert, Key: c.Key, CA: c.CA, CRL: c.CRL},
		Optional: c.Client == TLSOptional,
		Logger:   log,
	})
}

// client reads the files of the connection to a master.
func (c *TLSConfig) client(log *slog.Logger) (*tlsfiles.Client, error) {
	return tlsfiles.NewClient(tlsfiles.ClientOptions{
		Files:      tlsfiles.Files{Cert: c.MasterCert, Key: c.MasterKey, CA: c.MasterCA},
		ServerName: c.MasterName,
		Logger:     log,
	})
}

// openTLS prepares what the ports need, nil without TLS. files are those of the certificate.
func openTLS(c *TLSConfig, log logger) (g *tlsport.Guard, files *tlsfiles.Server, err error) {
	if !c.on() {
		return nil, nil, nil // plaintext, no error
	}
	if files, err = c.server(log.Logger); err != nil {
		return nil, nil, fmt.Errorf("TLS: %w", err)
	}
	log.system("TLS: %s, client certificates %s; the certificate is valid until %s", cmp.Or(c.Mode, TLSRequired), c.clients(),
		instant(files.Expires()))
	return tlsport.NewGuard(tlsport.Options{Files: files, Plaintext: c.Mode == TLSAllowed, Logger: log.Logger}), files, nil
}

// clients says what is asked of clients.
func (c *TLSConfig) clients() string {
	if c.CA == "" {
		return "are not asked for"
	}
	return cmp.Or(c.Client, TLSRequired)
}

// secure returns a function that makes a port speak TLS, or leaves it alone without TLS.
func secure(g *tlsport.Guard) func(net.Listener) net.Listener {
	if g == nil {
		return func(l net.Listener) net.Listener { return l }
	}
	return g.Listen
}
