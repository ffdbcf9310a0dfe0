package cli

import (
	"crypto/tls"
	"fmt"
	"os"
	"strconv"
	"strings"

	"gotycoon/internal/tlsfiles"
)

// Variables with credentials, for scripts that need no change. Options count more.
const (
	envUser     = "KT_USER"
	envPassword = "KT_PASSWORD"
	envToken    = "KT_TOKEN"
)

// Credentials are the options for a server with an access file. After Read they are what the client
// shows to the server: a token, or else user and password, or nothing.
type Credentials struct {
	User, Password string
	Token          string

	passwordFile, tokenFile string
}

// Credentials defines -user, -password-file and -token-file. No option takes the secret itself:
// everybody on the machine can read the command line of a process.
func (f *Flags) Credentials() *Credentials {
	return f.credentials(" (default $"+envUser+")", " (default $"+envToken+" is the token)")
}

// CredentialsNamed is Credentials for ReadNamed: the help texts name no variables.
func (f *Flags) CredentialsNamed() *Credentials { return f.credentials("", "") }

func (f *Flags) credentials(user, token string) *Credentials {
	w := new(Credentials)
	f.StringVar(&w.User, "user", "", "`name` for a server with an access file"+user)
	f.StringVar(&w.passwordFile, "password-file", "", "`file` with the user's password in its first line (default $"+envPassword+" is the password)")
	f.StringVar(&w.tokenFile, "token-file", "", "`file` with a token in its first line, instead of user and password"+token)
	return w
}

// ReadNamed is Read for a client that may talk to any server. The variables are meant for the
// servers of their owner, so they are not shown unless an option is given; given is false then.
func (w *Credentials) ReadNamed() (given bool, err error) {
	if w.User == "" && w.passwordFile == "" && w.tokenFile == "" {
		return false, nil
	}
	return true, w.Read()
}

// Read completes the credentials: by the options, else by the token in the environment, else by
// user and password there.
func (w *Credentials) Read() (err error) {
	byUser := w.User != "" || w.passwordFile != ""
	if byUser && w.tokenFile != "" {
		return UsageError("-token-file takes the place of -user and -password-file")
	}
	if !byUser {
		if w.Token, err = secret(w.tokenFile, envToken); err != nil || w.Token != "" {
			return err
		}
	}
	if w.User == "" {
		w.User = os.Getenv(envUser)
	}
	w.Password, err = secret(w.passwordFile, envPassword)
	return err
}

// secret returns the first line of a file, or, with an empty path, the variable.
func secret(path, variable string) (string, error) {
	if path == "" {
		return os.Getenv(variable), nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r"), nil
}

// Variables for TLS, for scripts that need no change. Options count more.
const (
	envTLS     = "GOTYCOON_TLS" // 1: speak TLS; any of the others implies it
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

// TLSFiles defines the options for certificates, keys and authorities.
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

// Trust is Config for a connection that speaks TLS in any case.
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

// wanted reports whether to speak TLS: by the options, or else by the environment.
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

// value returns the value of an option, or else of a variable.
func (t *TLS) value(option, value, env string) string {
	if t.flags.Changed(option) {
		return value
	}
	return os.Getenv(env)
}
