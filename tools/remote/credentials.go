package remote

import (
	"slices"

	"gotycoon/client"
	"gotycoon/tools/cli"
)

// withoutCredentials are the sub-commands without options for credentials, because their protocols
// carry none.
var withoutCredentials = []string{"backup", "counter", "lock"}

// shown are credentials as the client shows them.
func shown(w *cli.Credentials) client.Credentials {
	return client.Credentials{User: w.User, Password: w.Password, Token: w.Token}
}

// defineCredentials adds the options for credentials to the sub-commands whose protocols carry
// credentials. The other sub-commands may call the server's main port as well; for these calls the
// credentials come from the environment.
func defineCredentials(flags *cli.Flags, command string) *cli.Credentials {
	if slices.Contains(withoutCredentials, command) {
		return new(cli.Credentials)
	}
	return flags.Credentials()
}
