// Package timed is kttimedmgr: it works on database files while no server has them open. Main is the command; its sub-commands are
// in one table. How files of a crashed server are brought up to date is told at db.Offline.
package timed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"gotycoon/tools/cli"
)

const program = "kttimedmgr"

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
		{"create", "database", "create a database file", create},
		{"inform", "database", "print number and size of the records", inform},
		{"set", "database key value", "store a record", set},
		{"remove", "database key", "remove a record", remove},
		{"get", "database key", "print a value", get},
		{"list", "database [key]", "print records, from the beginning or a key on", list},
		{"clear", "database", "remove all records", clearRecords},
		{"import", "database [file]", "store records from lines KEY<tab>VALUE; lines KEY remove", importRecords},
		{"copy", "database file", "make a copy that is complete and of one moment", copyFile},
		{"dump", "database [file]", "write all records to a snapshot", dump},
		{"load", "database [file]", "store the records of a snapshot", load},
		{"vacuum", "database", "remove expired records", vacuum},
		{"merge", "database source ...", "store the records of other databases", merge},
		{"recover", "database logdir", "bring in the updates of a log, all or up to a moment", recoverLog},
		{"verify", "database [logdir]", "look at every page of a file and every record of its log", verify},
		{"compact", "database", "give back the space in a file that holds nothing", compact},
		{"repair", "database newdatabase", "save what can be read of a damaged file into a new one", repair},
		{"check", "database", "read every record in two ways and compare", check},
		{"bgsinform", "file", "tell what is in a server's snapshots", bgsInform},
	}
}

// usageError is a command line that cannot be meant.
type usageError string

// Error says what is wrong.
func (e usageError) Error() string { return string(e) }

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
	err = firstError(err, c.closeAll())
	err = firstError(err, c.out.Flush())
	var wrong usageError
	switch {
	case err == nil:
		return 0
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

// firstError returns the first of two errors: what went wrong later is mostly a consequence.
func firstError(first, later error) error {
	if first != nil {
		return first
	}
	return later
}

func printUsage(w io.Writer, cmds []command) {
	fmt.Fprintf(w, "%s: works on database files that no server has open\n\nusage:\n", program)
	for _, cmd := range cmds {
		fmt.Fprintf(w, "  %s %-40s %s\n", program, cmd.usage(), cmd.help)
	}
	if len(cmds) > 1 {
		fmt.Fprintf(w, "  %s %-40s print the version\n\n\"%[1]s COMMAND --help\" explains the options of a command.\n", program, "version")
	}
}
