// Package util is ktutilmgr: small tools around a server. Main is the command; its sub-commands are in one table.
package util

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"gotycoon/tools/cli"
)

const program = "ktutilmgr"

// command is one sub-command.
type command struct {
	name string
	args string // arguments behind the options, for the usage text
	help string
	run  func(ctx context.Context, c *call) error
}

// usage is the command line as the usage text shows it.
func (cmd command) usage() string { return strings.TrimSpace(cmd.name + " [option ...] " + cmd.args) }

// commands are the sub-commands in the order of the usage text.
func commands() []command {
	return []command{
		{"date", "", "print a time in another form", printDate},
		{"http", "url", "make an HTTP request and print the answer", request},
		{"rpc", "procedure [name value ...]", "call a procedure of a server", rpc},
		{"ulog", "directory", "print an update log, or list its files (-uf)", updateLog},
		{"enc", "[file]", "encode or decode (-d): Base64, or another form", encode},
		{"hex", "[file]", "print hexadecimal digits, or read them (-d)", hexadecimal},
		{"conf", "", "print what these programs are", configuration},
	}
}

// usageError is a command line that cannot be meant.
type usageError string

// Error says what is wrong.
func (e usageError) Error() string { return string(e) }

// call is one run of a sub-command.
type call struct {
	flags  *cli.Flags
	raw    []string
	stdin  io.Reader
	out    *bufio.Writer
	stderr io.Writer
	args   []string
}

// parse reads the options; the arguments must be as many as least to most, most < 0 meaning any number.
func (c *call) parse(least, most int) error {
	err := c.flags.Parse(c.raw)
	n := c.flags.NArg()
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case err != nil:
		return usageError(err.Error())
	case n < least:
		return usageError("an argument is missing")
	case most >= 0 && n > most:
		return usageError("there are too many arguments")
	}
	c.args = c.flags.Args()
	return nil
}

// Main runs the command with the arguments behind its name and returns the exit code: 0, or 1 after any failure.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		printUsage(stderr, commands())
		return 1
	}
	switch strings.TrimLeft(args[0], "-") {
	case "version":
		fmt.Fprintln(stdout, cli.Version)
		return 0
	case "help", "h", "usage":
		printUsage(stdout, commands())
		return 0
	}
	for _, cmd := range commands() {
		if cmd.name == args[0] {
			c := &call{flags: cli.New(cmd.name), raw: args[1:], stdin: stdin, out: bufio.NewWriter(stdout), stderr: stderr}
			return c.run(ctx, cmd, stdout)
		}
	}
	printUsage(stderr, commands())
	fmt.Fprintf(stderr, "\n%s: unknown command\n", args[0])
	return 1
}

func (c *call) run(ctx context.Context, cmd command, stdout io.Writer) int {
	err := cmd.run(ctx, c)
	if flushErr := c.out.Flush(); err == nil {
		err = flushErr
	}
	var wrong usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, pflag.ErrHelp):
		printUsage(stdout, []command{cmd})
		fmt.Fprintf(stdout, "\n%s", c.flags.FlagUsages())
		return 0
	case errors.As(err, &wrong):
		printUsage(c.stderr, []command{cmd})
		fmt.Fprintf(c.stderr, "\n%s: %v (\"%s %[1]s --help\" explains the options)\n", cmd.name, wrong, program)
	case !errors.Is(err, errSaid):
		fmt.Fprintf(c.stderr, "%s: %v\n", program, err)
	}
	return 1
}

// errSaid is a failure that the output tells already.
var errSaid = errors.New("said in the output")

func printUsage(w io.Writer, cmds []command) {
	fmt.Fprintf(w, "%s: small tools around a key-value server for the Kyoto Tycoon protocols\n\nusage:\n", program)
	for _, cmd := range cmds {
		fmt.Fprintf(w, "  %s %-42s %s\n", program, cmd.usage(), cmd.help)
	}
	if len(cmds) > 1 {
		fmt.Fprintf(w, "  %s %-42s print the version\n\n\"%[1]s COMMAND --help\" explains the options of a command.\n", program, "version")
	}
}
