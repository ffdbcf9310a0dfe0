package tlsfiles

import (
	"crypto/tls"
	"errors"
	"log/slog"
)

// clientSessions is how many sessions a client remembers, to resume them with a shorter handshake.
const clientSessions = 64

// ClientOptions are the parts that a Client is made of.
type ClientOptions struct {
	Files             // CA: empty means those that the system trusts; Cert and Key: for servers that ask, or none
	ServerName string // name that the server's certificate must have; empty: that of the host in Config
	Logger     *slog.Logger
}

// Client is the configuration of a client. Many goroutines may use it.
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

// Config returns the configuration of a connection to a host, with what the files hold now.
func (c *Client) Config(host string) *tls.Config {
	config := (*c.files.current()).Clone()
	if config.ServerName = c.name; c.name == "" {
		config.ServerName = host
	}
	return config
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
