package remote

import (
	"context"
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"

	"gotycoon/client"
	"gotycoon/tools/cli"
)

// endpoint is one of the two servers of a sub-command that talks to two.
type endpoint struct {
	name        string // HOST:PORT, for messages
	client      *client.Client
	credentials bool // the client shows some, which the binary protocol cannot carry
}

// The forms of an address that say whether to speak TLS. An original has neither TLS nor
// credentials, and it often stands beside a server that has both.
const (
	plainScheme  = "tcp://" // neither TLS nor credentials, whatever the options say
	secureScheme = "tls://" // TLS, even if no option asks for it
)

// endpoint makes the client of the server at an argument: HOST, HOST:PORT, or either of them behind
// a scheme. Without a scheme the options for TLS and credentials hold.
func (c *call) endpoint(arg string) (endpoint, error) {
	return c.endpointAs(arg, identity{c.who, c.tls})
}

// identity is as whom, and over which TLS, a server is spoken to.
type identity struct {
	who *cli.Credentials
	tls *cli.TLS
}

// read completes the identity for a second server by that for the first one, where the options say
// nothing else.
func (i *identity) read(c *call) error {
	given, err := i.who.ReadNamed()
	if !given {
		i.who = c.who
	}
	if !i.tls.Given() {
		i.tls = c.tls
	}
	return err
}

// endpointAs is endpoint with other options.
func (c *call) endpointAs(arg string, as identity) (endpoint, error) {
	addr, plain := strings.CutPrefix(arg, plainScheme)
	addr, secure := strings.CutPrefix(addr, secureScheme)
	host, _, err := net.SplitHostPort(addr)
	if err != nil { // without a port
		host, addr = addr, net.JoinHostPort(strings.Trim(addr, "[]"), strconv.Itoa(client.DefaultPort))
	}
	if host == "" && strings.HasPrefix(addr, ":") {
		host, addr = "localhost", "localhost"+addr
	}
	o := client.Options{Timeout: max(0, *c.timeout)}
	if !plain {
		config := as.tls.Config
		if secure {
			config = as.tls.Trust
		}
		if o.TLS, err = config(host); err != nil {
			return endpoint{}, err
		}
		o.Credentials = shown(as.who)
	}
	return endpoint{addr, client.New(addr, o), o.Credentials != client.Credentials{}}, nil
}

// connect makes sure that the server can be reached.
func (e endpoint) connect(ctx context.Context) error {
	if err := e.client.Connect(ctx); err != nil {
		return fmt.Errorf("connect to %s: %w", e.name, err)
	}
	return nil
}

// close closes the connections. Everything has been answered, so there is no error to report.
func (e endpoint) close() { _ = e.client.Close() }

// databaseNames returns the names of a server's databases, in the order of their numbers, from its
// report.
func databaseNames(report client.Rows) (names []string) {
	for i := 0; ; i++ {
		row, ok := report["db_"+strconv.Itoa(i)]
		if !ok {
			return names
		}
		_, file, _ := strings.Cut(string(row), " path=")
		names = append(names, path.Base(file))
	}
}
