package remote

import (
	"slices"

	"gotycoon/client"
	"gotycoon/tools/cli"
)

// withoutCredentials are the sub-commands whose protocols have none.
var withoutCredentials = []string{"backup", "counter", "lock"}

// defineCredentials adds the options of all other sub-commands. What these send nevertheless, to the server's port, the environment says.
func (c *call) defineCredentials(command string) {
	c.who = new(cli.Credentials)
	if !slices.Contains(withoutCredentials, command) {
		c.who = c.flags.Credentials()
	}
}

// credentials are what the run shows to a server with an access file.
func (c *call) credentials() client.Credentials {
	return client.Credentials{User: c.who.User, Password: c.who.Password, Token: c.who.Token}
}
