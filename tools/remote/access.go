package remote

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"gotycoon/client"
)

// Environment variables that stand for the options about credentials. The options count more.
const (
	envUser     = "KT_USER"
	envPassword = "KT_PASSWORD"
	envToken    = "KT_TOKEN"
)

// credentials are what the run shows to a server with an access file.
type credentials struct {
	client.Credentials
	passwordFile, tokenFile string
}

// withoutCredentials are the sub-commands whose protocols have none.
var withoutCredentials = []string{"backup", "counter", "lock"}

// defineCredentials adds the options of all other sub-commands. Secrets themselves are no options: everybody sees those of a process.
func (c *call) defineCredentials(command string) {
	if slices.Contains(withoutCredentials, command) {
		return
	}
	w := &c.who
	c.flags.StringVar(&w.User, "user", "", "`name` for a server with an access file (default $"+envUser+")")
	c.flags.StringVar(&w.passwordFile, "password-file", "", "`file` with the user's password in its first line (default $"+envPassword+" is the password)")
	c.flags.StringVar(&w.tokenFile, "token-file", "", "`file` with a token in its first line, instead of user and password (default $"+envToken+" is the token)")
}

// read completes the credentials: with what the options name, else with a token, else with user and password of the environment.
func (w *credentials) read() (err error) {
	byUser := w.User != "" || w.passwordFile != ""
	if byUser && w.tokenFile != "" {
		return usageError("-token-file takes the place of -user and -password-file")
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
