package cli

import (
	"fmt"
	"os"
	"strings"
)

// What the environment says of credentials, for scripts that need no change. Options count more.
const (
	envUser     = "KT_USER"
	envPassword = "KT_PASSWORD"
	envToken    = "KT_TOKEN"
)

// Credentials are the options that say what a client shows to a server with an access file. After Read they are what it shows: a token, or
// else user and password, or nothing.
type Credentials struct {
	User, Password string
	Token          string

	passwordFile, tokenFile string
}

// Credentials defines -user, -password-file and -token-file. Secrets themselves are no options: everybody sees those of a process.
func (f *Flags) Credentials() *Credentials {
	return f.credentials(" (default $"+envUser+")", " (default $"+envToken+" is the token)")
}

// CredentialsNamed is Credentials for ReadNamed.
func (f *Flags) CredentialsNamed() *Credentials { return f.credentials("", "") }

func (f *Flags) credentials(user, token string) *Credentials {
	w := new(Credentials)
	f.StringVar(&w.User, "user", "", "`name` for a server with an access file"+user)
	f.StringVar(&w.passwordFile, "password-file", "", "`file` with the user's password in its first line (default $"+envPassword+" is the password)")
	f.StringVar(&w.tokenFile, "token-file", "", "`file` with a token in its first line, instead of user and password"+token)
	return w
}

// ReadNamed is Read for a client that may talk to anybody. given is false where no option was: what the environment says is for servers that
// an option, or its default, names, and stays here then.
func (w *Credentials) ReadNamed() (given bool, err error) {
	if w.User == "" && w.passwordFile == "" && w.tokenFile == "" {
		return false, nil
	}
	return true, w.Read()
}

// Read completes the credentials: with what the options name, else with a token, else with user and password of the environment.
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

// secret returns the first line of a file, without one the variable.
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
