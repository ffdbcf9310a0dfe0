package cli

import (
	"crypto/tls"
	"fmt"
	"os"
	"strconv"

	"gotycoon/internal/tlsfiles"
)

// What the environment says of TLS, for scripts that need no change. Options count more.
const (
	envTLS     = "GOTYCOON_TLS" // 1: speak TLS; the others say so as well
	envTLSCA   = "GOTYCOON_TLS_CA"
	envTLSCert = "GOTYCOON_TLS_CERT"
	envTLSKey  = "GOTYCOON_TLS_KEY"
	envTLSName = "GOTYCOON_TLS_NAME"
)

// TLS are the options of a client that can speak TLS.
type TLS struct {
	flags               *Flags
	on                  bool
	ca, cert, key, name string
}

// TLS defines -tls and the options of TLSFiles.
func (f *Flags) TLS() *TLS {
	t := f.TLSFiles()
	f.BoolVar(&t.on, "tls", false, "speak TLS; implied by the following options, and by "+envTLS+"=1 in the environment")
	return t
}

// TLSFiles defines the options that say with what to speak TLS.
func (f *Flags) TLSFiles() *TLS {
	t := &TLS{flags: f}
	f.StringVar(&t.ca, "tls-ca", "", "TLS: trust the authorities in this `file` only (default: $"+envTLSCA+", or those of the system)")
	f.StringVar(&t.cert, "tls-cert", "", "TLS: show the certificate in this `file` (default: $"+envTLSCert+")")
	f.StringVar(&t.key, "tls-key", "", "TLS: `file` of its private key (default: $"+envTLSKey+")")
	f.StringVar(&t.name, "tls-name", "", "TLS: `name` in the certificate of the server (default: $"+envTLSName+", or that of the host)")
	return t
}

// Config returns the configuration of connections to a host, nil without TLS. It reads the files.
func (t *TLS) Config(host string) (*tls.Config, error) {
	on, err := t.wanted()
	if err != nil || !on {
		return nil, err
	}
	return t.Trust(host)
}

// Trust is as Config where it is known that TLS is spoken.
func (t *TLS) Trust(host string) (*tls.Config, error) {
	files, err := tlsfiles.NewClient(tlsfiles.ClientOptions{
		Files: tlsfiles.Files{
			Cert: t.value("tls-cert", t.cert, envTLSCert),
			Key:  t.value("tls-key", t.key, envTLSKey),
			CA:   t.value("tls-ca", t.ca, envTLSCA),
		},
		ServerName: t.value("tls-name", t.name, envTLSName),
	})
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return files.Config(host), nil
}

// wanted tells whether TLS shall be spoken: as an option says, or else the environment.
func (t *TLS) wanted() (bool, error) {
	if t.flags.Changed("tls") {
		return t.on, nil
	}
	if text := os.Getenv(envTLS); text != "" {
		on, err := strconv.ParseBool(text)
		if err != nil {
			return false, fmt.Errorf("%s=%s: must be 1 or 0", envTLS, text)
		}
		return on, nil
	}
	for option, env := range map[string]string{"tls-ca": envTLSCA, "tls-cert": envTLSCert, "tls-key": envTLSKey, "tls-name": envTLSName} {
		if t.flags.Changed(option) || os.Getenv(env) != "" {
			return true, nil
		}
	}
	return false, nil
}

// value is that of an option, or else of the environment.
func (t *TLS) value(option, value, env string) string {
	if t.flags.Changed(option) {
		return value
	}
	return os.Getenv(env)
}
