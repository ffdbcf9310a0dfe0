package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"gotycoon/client"
)

// open connects to the server.
func (c *call) open(ctx context.Context) (*client.DB, error) {
	addr, options, err := c.server()
	if err != nil {
		return nil, err
	}
	if c.stays() && !c.flags.Changed("tout") {
		c.client = c.outer.client
	} else {
		c.client = client.New(addr, options)
	}
	if err := c.client.Connect(ctx); err != nil {
		return nil, newNoConnection(addr, err)
	}
	c.signals.Waits, c.signals.Sends = c.flags.Changed("swname"), c.flags.Changed("ssname")
	return c.client.DB(c.db).With(c.signals), nil
}

// parseAndOpen reads the options and connects to the server.
func (c *call) parseAndOpen(ctx context.Context, least, most int) (*client.DB, error) {
	if err := c.parse(least, most); err != nil {
		return nil, err
	}
	return c.open(ctx)
}

// firstAnswer is how long a server may take for its first answer without -tout: a port of another
// kind may say nothing for ever.
const firstAnswer = 10 * time.Second

// openBinary is open for a command that uses the binary protocol. Other servers, such as
// memcached, wait for the rest of a binary request for ever. A call over HTTP finds them out.
func (c *call) openBinary(ctx context.Context) (*client.DB, error) {
	db, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(max(0, *c.timeout), firstAnswer))
	defer cancel()
	_, err = c.client.DB("").Call(ctx, "void")
	if errors.Is(err, client.ErrDenied) || errors.Is(err, errors.ErrUnsupported) {
		// The access file may allow the binary request nevertheless.
		err = nil
	}
	return db, c.failed("DB::open", err)
}

// inEngine adds to an error about the update log why a server has none, if its databases are in an
// engine that servers share.
func inEngine(ctx context.Context, c *client.Client, err error) error {
	ctx, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	rows, failed := c.Report(ctx)
	if failed != nil {
		return err // the client may not ask
	}
	if _, engine, is := strings.Cut(string(rows["conf_kt_features"]), "(engine "); is {
		return fmt.Errorf("%w: its databases are in the engine %s, whose log no server hands out so far; '%s backup' copies a database",
			err, strings.TrimSuffix(engine, ")"), program)
	}
	return err
}

// openFor is openBinary or open.
func (c *call) openFor(ctx context.Context, binary bool) (*client.DB, error) {
	if binary {
		return c.openBinary(ctx)
	}
	return c.open(ctx)
}

// server returns the address of the server that the options name, and the options of a client for
// it.
func (c *call) server() (addr string, o client.Options, err error) {
	secure, err := c.tls.Config(cmp.Or(c.host, "localhost"))
	return c.peerName(), client.Options{Timeout: max(0, *c.timeout), TLS: secure, Credentials: c.credentials()}, err
}

// failed gives the error of a call the form that scripts know. name is the name of the call in the
// original.
func (c *call) failed(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s failed: %s: %w", name, c.peer(), err)
}

// peer names the server in error lines. Without -host the name is empty.
func (c *call) peer() string { return fmt.Sprintf("%s:%d", c.host, *c.port) }

// peerName names the server for people.
func (c *call) peerName() string {
	return net.JoinHostPort(cmp.Or(c.host, "localhost"), strconv.FormatInt(*c.port, 10))
}

// hasNumber reports whether the binary protocol can name the database: it knows numbers only.
func (c *call) hasNumber() bool {
	_, err := strconv.ParseUint(c.db, 10, 16)
	return c.db == "" || err == nil
}

// number returns the number of the database for the binary protocol. A database with a name counts
// as number 0, as in the original.
func (c *call) number() uint16 {
	n, err := strconv.ParseUint(c.db, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}
