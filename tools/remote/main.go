// Package remote is ktremotemgr: a client of a running server for people and scripts. Main is the command; its sub-commands
// are in one table.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"gotycoon/tools/cli"
)

const program = "ktremotemgr"

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
		{"report", "", "print what the server tells about itself", report},
		{"script", "procedure [key value ...]", "call a script procedure", script},
		{"tunerepl", "[master]", "follow another master, or none", tuneReplication},
		{"inform", "", "print number and size of the records of a database", inform},
		{"clear", "", "remove all records", clearRecords},
		{"sync", "", "write a database to its file", synchronize},
		{"set", "key value", "store a record", set},
		{"remove", "key", "remove a record", remove},
		{"get", "key", "print a value", get},
		{"list", "[key]", "print records, from the beginning or a key on", list},
		{"import", "[file]", "store records from lines KEY<tab>VALUE; lines KEY remove", importRecords},
		{"vacuum", "", "remove expired records", vacuum},
		{"slave", "", "print the update log, or list (-uf) and remove (-ur) its files", slave},
		{"backup", "file", "write a database as it is now to a file: a snapshot (.ktss, or - for the standard output) or a database (.kct .kch .kcd .kcf)", backup},
		{"setbulk", "[key value ...]", "store records together", setBulk},
		{"removebulk", "[key ...]", "remove records together", removeBulk},
		{"getbulk", "[key ...]", "print records together", getBulk},
		{"match", "[prefix ...]", "print keys that begin alike", matchPrefix},
		{"regex", "[expression ...]", "print keys that match a regular expression", matchRegex},
		{"seq", "[number]", "print sequence numbers, or explain one (-port of -sequence-port)", seq},
		{"quota", "call [number]", "query, apply, cancel, increase, decrease or empty a quota (-port of -quota-port)", quota},
		{"lock", "[key [-- command ...]]", "run a command under a lock; -status, -list or -cancel locks (-port of -lock-port)", lock},
		{"counter", "call [argument ...]", "get, acquire, release, stats or dump counters (-port of -counter-port)", counter},
	}
}

// usageError is a command line that cannot be meant.
type usageError string

// Error says what is wrong.
func (e usageError) Error() string { return string(e) }

// Main runs the command with the arguments behind its name and returns the exit code: 0, 1 after any failure, or that of
// the command that lock or counter acquire ran.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		printUsage(stderr, commands())
		return 1
	}
	switch name := strings.TrimLeft(args[0], "-"); name {
	case "version":
		fmt.Fprintln(stdout, cli.Version)
		return 0
	case "help", "h":
		printUsage(stdout, commands())
		return 0
	}
	for _, cmd := range commands() {
		if cmd.name == args[0] {
			return runCommand(ctx, cmd, args[1:], stdin, stdout, stderr)
		}
	}
	printUsage(stderr, commands())
	fmt.Fprintf(stderr, "\n%s: unknown command\n", args[0])
	return 1
}

func runCommand(ctx context.Context, cmd command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := newCall(cmd, args, stdin, stdout, stderr)
	err := cmd.run(ctx, c)
	if flushErr := c.out.Flush(); err == nil {
		err = flushErr
	}
	if c.client != nil {
		_ = c.client.Close() // everything has been answered
	}
	var wrong usageError
	var exit exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case errors.Is(err, pflag.ErrHelp):
		printUsage(stdout, []command{cmd})
		fmt.Fprintf(stdout, "\n%s", c.flags.FlagUsages())
		return 0
	case errors.As(err, &wrong):
		printUsage(stderr, []command{cmd})
		fmt.Fprintf(stderr, "\n%s: %v (\"%s %[1]s --help\" explains the options)\n", cmd.name, wrong, program)
	default:
		fmt.Fprintf(stderr, "%s: %v\n", program, err)
	}
	return 1
}

func printUsage(w io.Writer, cmds []command) {
	fmt.Fprintf(w, "%s: a client of a key-value server for the Kyoto Tycoon protocols\n\nusage:\n", program)
	for _, cmd := range cmds {
		fmt.Fprintf(w, "  %s %-42s %s\n", program, cmd.usage(), cmd.help)
	}
	if len(cmds) > 1 {
		fmt.Fprintf(w, "  %s %-42s print the version\n\n\"%[1]s COMMAND --help\" explains the options of a command.\n", program, "version")
	}
}
