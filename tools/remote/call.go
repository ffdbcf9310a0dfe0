package remote

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gotycoon/client"
	"gotycoon/tools/cli"
	"gotycoon/tools/show"
	"gotycoon/ulog"
)

const program = "ktremotemgr"

// usageError is the error of a command line that makes no sense.
type usageError = cli.UsageError

// exitStatus is a failure with an exit code of its own.
type exitStatus = cli.ExitStatus

// call is one run of a sub-command: its options, and the server it talks to.
type call struct {
	flags  *cli.Flags
	raw    []string
	stdin  io.Reader
	out    *bufio.Writer
	stdout io.Writer // below out
	stderr io.Writer

	host    string
	port    *int64
	timeout *time.Duration
	tls     *cli.TLS
	db      string
	json    bool
	hexIn   bool // -sx
	hexOut  bool // -px
	signals client.Signals
	who     *cli.Credentials

	args   []string
	client *client.Client
	outer  *call // the shell in which this call runs; nil: none
}

const outBuffer = 64 << 10

func newCall(name string, args []string, stdin io.Reader, stdout, stderr io.Writer) *call {
	c := &call{flags: cli.New(name), raw: args, stdin: stdin, stdout: stdout, stderr: stderr}
	c.out = bufio.NewWriterSize(stdout, outBuffer)
	c.flags.StringVar(&c.host, "host", "", "`name` of the server (default localhost)")
	c.port = c.flags.Integer("port", 1978, "port of the server (default 1978)")
	c.timeout = c.flags.Seconds("tout", 0, "give up when a reply takes longer than so many seconds (default: never)")
	c.defineCredentials(name)
	c.tls = c.flags.TLS()
	return c
}

// join makes the call one of a shell: it talks to the shell's server, as the shell does.
func (c *call) join(outer *call) {
	c.outer = outer
	c.host, *c.port, *c.timeout = outer.host, *outer.port, *outer.timeout
}

// stays reports whether the call talks to the server of the shell in which it runs, in the way of
// the shell: its own options are not about that. Otherwise it has nothing from the shell, so that a
// password for one server is not shown to another one.
func (c *call) stays() bool {
	elsewhere := []string{"host", "port", "user", "password-file", "token-file", "tls", "tls-ca", "tls-cert", "tls-key", "tls-name"}
	return c.outer != nil && !slices.ContainsFunc(elsewhere, c.flags.Changed)
}

// withoutCredentials are the sub-commands without options for credentials, because their protocols
// carry none.
var withoutCredentials = []string{"backup", "counter", "lock"}

// defineCredentials adds the options for credentials to the sub-commands whose protocols carry
// credentials. The other sub-commands may call the server's main port as well; for these calls the
// credentials come from the environment.
func (c *call) defineCredentials(command string) {
	c.who = new(cli.Credentials)
	if !slices.Contains(withoutCredentials, command) {
		c.who = c.flags.Credentials()
	}
}

// withDB adds the option that chooses a database.
func (c *call) withDB() *call {
	c.flags.StringVar(&c.db, "db", "", "`name` or number of the database (default: the first)")
	return c
}

// withSignals adds the options that wait for a signal of another client, and that send a signal.
func (c *call) withSignals() *call {
	c.flags.StringVar(&c.signals.Wait, "swname", "", "wait for the signal of this `name` first")
	c.flags.Var(cli.Duration(&c.signals.WaitTime), "swtime", "wait for it at most so many seconds (default 30)")
	c.flags.StringVar(&c.signals.Send, "ssname", "", "send the signal of this `name` afterwards")
	c.flags.BoolVar(&c.signals.Broadcast, "ssbrd", false, "send it to all who wait, not only to one")
	return c
}

// withHex adds the option for arguments in hexadecimal.
func (c *call) withHex() *call {
	c.flags.BoolVar(&c.hexIn, "sx", false, "arguments are hexadecimal")
	return c
}

// withHexOut adds the option for output in hexadecimal.
func (c *call) withHexOut() *call {
	c.flags.BoolVar(&c.hexOut, "px", false, "print hexadecimal")
	return c
}

// withJSON adds the option for output in JSON.
func (c *call) withJSON() *call {
	c.flags.BoolVar(&c.json, "json", false, show.JSONHelp)
	return c
}

// expiry returns the expiry that the option says. 0 means that the record expires at once, as with
// the original; in package client it would mean never.
func expiry(xt int64) client.Expiry {
	switch xt {
	case 0:
		return client.At(time.Now().Truncate(time.Second))
	case math.MaxInt64:
		return client.Never
	}
	return client.Expiry(xt)
}

// withExpiry adds the option for the expiration time, and returns a pointer to its value.
func (c *call) withExpiry() *int64 {
	return c.flags.Integer("xt", math.MaxInt64, "let records expire after so many seconds; negative: at this time in seconds since 1970")
}

// parse reads the options. There must be at least least arguments and at most most; a negative most
// means any number.
func (c *call) parse(least, most int) error {
	args, err := c.flags.ParseArgs(c.raw, least, most)
	switch {
	case err != nil:
		return err
	case *c.port < 1:
		return usageError("-port: must be at least 1")
	}
	if err := c.readCredentials(); err != nil {
		return err
	}
	for _, arg := range args {
		if c.hexIn {
			arg = string(show.DecodeHex(arg))
		}
		c.args = append(c.args, arg)
	}
	return nil
}

// readCredentials completes the credentials, or takes those of the shell, and its TLS.
func (c *call) readCredentials() error {
	if c.stays() {
		c.who, c.tls = c.outer.who, c.outer.tls
		return nil
	}
	return c.who.Read()
}

// now as a time stamp is the present moment. "-" means the same.
const now = "now"

// parseStamp reads the value of -ts.
func parseStamp(text string) (uint64, error) {
	if text == now || text == "-" {
		return uint64(ulog.StampAt(time.Now())), nil
	}
	var n int64
	if err := cli.Int(&n).Set(text); err != nil || n < 0 {
		return 0, usageError("-ts: must be a time stamp")
	}
	return uint64(n), nil
}

// open connects to the server. The first line of the error is the line that scripts know from the
// original.
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
		reason := ": " + why(addr, err)
		if options.TLS == nil { // the original's line, as it is
			reason = advice(why(addr, err))
		}
		return nil, fmt.Errorf("DB::open failed: : %d: %s: connection failed%s", int(client.Network), client.Network, reason)
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

// server returns the address of the server that the options name, and the options of a client for
// it.
func (c *call) server() (addr string, o client.Options, err error) {
	host := cmp.Or(c.host, "localhost")
	secure, err := c.tls.Config(host)
	return net.JoinHostPort(host, strconv.FormatInt(*c.port, 10)), client.Options{Timeout: max(0, *c.timeout), TLS: secure, Credentials: c.credentials()}, err
}

// credentials returns the credentials that the run shows to a server with an access file.
func (c *call) credentials() client.Credentials {
	return client.Credentials{User: c.who.User, Password: c.who.Password, Token: c.who.Token}
}

// advice is a line behind a line of the original, which says neither the server nor the cause.
func advice(text string) string { return "\n" + program + ": " + text }

// why returns the reason why there is no connection to a server, and what to look at.
func why(addr string, err error) string {
	text := err.Error()
	if known, ok := errors.AsType[*client.Error](err); ok {
		text = known.Message
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		text += "; is the server running, and is this its address? (-host, -port)"
	case strings.Contains(text, "no such host"):
		text += "; is this the name of the server's machine? (-host)"
	}
	return addr + ": " + text
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

// Options returns the options of the run.
func (c *call) Options() *cli.Flags { return c.flags }

// End prints the buffered output and closes the connection. It returns err, or else the error of
// the output.
func (c *call) End(err error) error {
	if flushErr := c.out.Flush(); err == nil {
		err = flushErr
	}
	if c.client != nil && (c.outer == nil || c.client != c.outer.client) {
		_ = c.client.Close() // everything has been answered
	}
	return err
}

// pause waits, and returns an error when ctx ends first.
func pause(ctx context.Context, long time.Duration) error {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
