package tlsfiles

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"time"
)

// clientSessions is how many TLS sessions a client remembers: a session is resumed with a shorter
// handshake.
const clientSessions = 64

// ClientOptions of a Client.
type ClientOptions struct {
	// An empty CA means the authorities that the system trusts. Cert and Key are for servers that
	// ask for a certificate.
	Files
	ServerName string // name in the server's certificate; empty: the host given to Config
	Logger     *slog.Logger
}

// Client makes the TLS configurations of a client. Many goroutines may use it.
type Client struct {
	name  string
	files reloader[*tls.Config]
}

// NewClient reads the files.
func NewClient(o ClientOptions) (*Client, error) {
	if (o.Cert == "") != (o.Key == "") {
		return nil, errors.New("a client's certificate and its key belong together")
	}
	o.CRL = ""
	c := &Client{name: o.ServerName}
	c.files = reloader[*tls.Config]{files: o.Files, log: orSilent(o.Logger)}
	c.files.make = func(all contents) (*tls.Config, error) { return makeClient(o, all) }
	return c, c.files.open()
}

// Config returns the configuration of a connection to a host, with the present content of the
// files.
func (c *Client) Config(host string) *tls.Config {
	config := (*c.files.current()).Clone()
	if config.ServerName = c.name; c.name == "" {
		config.ServerName = host
	}
	return config
}

// Expires returns when the certificate in use ends, and whether there is one.
func (c *Client) Expires() (at time.Time, has bool) {
	all := (*c.files.current()).Certificates
	if len(all) == 0 {
		return time.Time{}, false
	}
	return all[0].Leaf.NotAfter, true
}

func makeClient(o ClientOptions, all contents) (*tls.Config, error) {
	config := &tls.Config{MinVersion: MinVersion, ClientSessionCache: tls.NewLRUClientSessionCache(clientSessions)}
	if o.CA != "" {
		authorities, err := parseCertificates(o.CA, all[o.CA])
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool(authorities)
	}
	if o.Cert != "" {
		pair, err := keyPair(o.Files, all)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
