package cli

import (
	"crypto/tls"
	"fmt"
	"os"
	"slices"
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
	return f.credentials("", "", " (default $"+envUser+")", " (default $"+envToken+" is the token)")
}

// CredentialsNamed is Credentials for ReadNamed: the help texts name no variables.
func (f *Flags) CredentialsNamed() *Credentials { return f.credentials("", "", "", "") }

// CredentialsFor is CredentialsNamed for one more server, which whose names: -to-user with the
// prefix "to-".
func (f *Flags) CredentialsFor(prefix, whose string) *Credentials {
	return f.credentials(prefix, whose+": ", " (default: -user, -password-file and -token-file are for this server too)", "")
}

func (f *Flags) credentials(prefix, whose, user, token string) *Credentials {
	w := new(Credentials)
	f.StringVar(&w.User, prefix+"user", "", whose+"`name` for a server with an access file"+user)
	f.StringVar(&w.passwordFile, prefix+"password-file", "", whose+"`file` with the user's password in its first line (default $"+envPassword+" is the password)")
	f.StringVar(&w.tokenFile, prefix+"token-file", "", whose+"`file` with a token in its first line, instead of user and password"+token)
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
	prefix              string // of the options' names; with one, the environment does not count
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

// TLSFilesFor is TLSFiles for one more server, which whose names: -to-tls-ca with the prefix "to-".
// Any of the options makes the client speak TLS to this server.
func (f *Flags) TLSFilesFor(prefix, whose string) *TLS {
	t := &TLS{flags: f, prefix: prefix}
	f.StringVar(&t.ca, prefix+"tls-ca", "", whose+": TLS, with trust in the authorities in this `file` only (default: the other -tls options are for this server too)")
	f.StringVar(&t.cert, prefix+"tls-cert", "", whose+": TLS, with the certificate in this `file`")
	f.StringVar(&t.key, prefix+"tls-key", "", whose+": `file` of its private key")
	f.StringVar(&t.name, prefix+"tls-name", "", whose+": TLS, with this `name` in the certificate of the server")
	return t
}

// Given reports whether one of the options is given.
func (t *TLS) Given() bool {
	return slices.ContainsFunc(tlsFiles(), func(f tlsFile) bool { return t.flags.Changed(t.prefix + f.option) })
}

// tlsFile is an option that implies TLS, and its variable.
type tlsFile struct{ option, env string }

func tlsFiles() []tlsFile {
	return []tlsFile{{"tls-ca", envTLSCA}, {"tls-cert", envTLSCert}, {"tls-key", envTLSKey}, {"tls-name", envTLSName}}
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
	if t.prefix != "" {
		return t.Given(), nil
	}
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
	return t.Given() || slices.ContainsFunc(tlsFiles(), func(f tlsFile) bool { return os.Getenv(f.env) != "" }), nil
}

// value returns the value of an option, or else of a variable.
func (t *TLS) value(option, value, env string) string {
	if t.prefix != "" || t.flags.Changed(option) {
		return value
	}
	return os.Getenv(env)
}
