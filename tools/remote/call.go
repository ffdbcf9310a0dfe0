package remote

import (
	"bufio"
	"context"
	"io"
	"math"
	"slices"
	"time"

	"gotycoon/client"
	"gotycoon/tools/cli"
	"gotycoon/tools/show"
	"gotycoon/ulog"
)

// usageError is the error of a command line that makes no sense.
type usageError = cli.UsageError

// exitStatus is a failure with an exit code of its own.
type exitStatus = cli.ExitStatus

// call is one run of a sub-command: its options, and the server it talks to.
type call struct {
	name   string // of the sub-command
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
	c := &call{name: name, flags: cli.New(name), raw: args, stdin: stdin, stdout: stdout, stderr: stderr}
	c.out = bufio.NewWriterSize(stdout, outBuffer)
	c.flags.StringVar(&c.host, "host", "", "`name` of the server (default localhost)")
	c.port = c.flags.Integer("port", 1978, "port of the server (default 1978)")
	c.timeout = c.flags.Seconds("tout", 0, "give up when a reply takes longer than so many seconds (default: never)")
	c.who = defineCredentials(c.flags, name)
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
	case *c.port < 1 || *c.port > math.MaxUint16:
		return usageError("-port: must be 1 to 65535")
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

// credentials returns the credentials that the run shows to a server with an access file.
func (c *call) credentials() client.Credentials {
	return shown(c.who)
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

// Options returns the options of the run.
func (c *call) Options() *cli.Flags { return c.flags }

// End prints the buffered output and closes the connection. It returns err, with what to look at,
// or else the error of the output.
func (c *call) End(err error) error {
	if flushErr := c.out.Flush(); err == nil {
		err = flushErr
	}
	if c.client != nil && (c.outer == nil || c.client != c.outer.client) {
		_ = c.client.Close() // everything has been answered
	}
	return advise(c.name, err)
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
