// Package remote is ktremotemgr: a client of a running server for people and scripts. Main is the command, every
// sub-command has a file of its own.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

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

// commands are the sub-commands in the order of the usage text.
func commands() []command {
	return []command{
		{"report", "", "print what the server tells about itself", report},
		{"script", "procedure [key value ...]", "call a script procedure", script},
		{"tunerepl", "[master]", "follow another master, or none", tuneReplication},
		{"inform", "", "print size and number of records of a database", inform},
		{"clear", "", "remove all records", clearRecords},
		{"sync", "", "write a database to its file", synchronize},
		{"set", "key value", "store a record", set},
		{"remove", "key", "remove a record", remove},
		{"get", "key", "print a value", get},
		{"list", "[key]", "print records, from the beginning or a key on", list},
		{"import", "[file]", "store records from lines KEY<tab>VALUE; lines KEY remove", importRecords},
		{"vacuum", "", "remove expired records", vacuum},
		{"slave", "", "print the update log, or list (-uf) and remove (-ur) its files", slave},
		{"setbulk", "[key value ...]", "store records together", setBulk},
		{"removebulk", "[key ...]", "remove records together", removeBulk},
		{"getbulk", "[key ...]", "print records together", getBulk},
		{"match", "[prefix ...]", "print keys that begin alike", matchPrefix},
		{"regex", "[expression ...]", "print keys that match a regular expression", matchRegex},
	}
}

// errUsage ends a command whose arguments cannot be meant.
var errUsage = errors.New("usage")

// Main runs the command with the arguments behind its name and returns the exit code: 0, or 1 after any failure.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		printUsage(stderr)
		return 1
	}
	switch name := strings.TrimLeft(args[0], "-"); name {
	case "version":
		fmt.Fprintln(stdout, cli.Version)
		return 0
	case "help", "h":
		printUsage(stdout)
		return 0
	}
	for _, cmd := range commands() {
		if cmd.name == args[0] {
			return runCommand(ctx, cmd, args[1:], stdin, stdout, stderr)
		}
	}
	printUsage(stderr)
	return 1
}

func runCommand(ctx context.Context, cmd command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := newCall(cmd, args, stdin, stdout)
	err := cmd.run(ctx, c)
	if c.help {
		fmt.Fprintf(stdout, "usage: %s %s [option ...] %s\n\n%s.\n\n%s", program, cmd.name, cmd.args, cmd.help, c.flags.FlagUsages())
		return 0
	}
	if flushErr := c.out.Flush(); err == nil {
		err = flushErr
	}
	if c.client != nil {
		_ = c.client.Close() // everything has been answered
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		printUsage(stderr)
	default:
		fmt.Fprintf(stderr, "%s: %v\n", program, err)
	}
	return 1
}

func printUsage(w io.Writer) {
	fmt.Fprintf(w, "%s: a client of a key-value server for the Kyoto Tycoon protocols\n\nusage:\n", program)
	for _, cmd := range commands() {
		fmt.Fprintf(w, "  %-42s %s\n", strings.TrimSpace(cmd.name+" [option ...] "+cmd.args), cmd.help)
	}
	fmt.Fprintf(w, "  %-42s print the version\n\n\"%s COMMAND --help\" explains the options of a command.\n", "version", program)
}
