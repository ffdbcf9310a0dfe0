// Package util is ktutilmgr: small tools around a server. Main is the command; its sub-commands are in one table.
package util

import (
	"bufio"
	"context"
	"io"

	"gotycoon/tools/cli"
	"gotycoon/tools/manual"
)

const program = "ktutilmgr"

// command is an entry of the table of sub-commands.
func command(name, args, help string, run func(context.Context, *call) error) cli.Command[*call] {
	return cli.Command[*call]{Name: name, Args: args, Help: help, Run: run}
}

// commands are the sub-commands in the order of the usage text.
func commands() []cli.Command[*call] {
	return []cli.Command[*call]{
		command("date", "", "print a time in another form", printDate),
		command("http", "url", "make an HTTP request and print the answer", request),
		command("rpc", "procedure [name value ...]", "call a procedure of a server", rpc),
		command("ulog", "directory", "print an update log, or list its files (-uf)", updateLog),
		command("enc", "[file]", "encode or decode (-d): Base64, or another form", encode),
		command("hex", "[file]", "print hexadecimal digits, or read them (-d)", hexadecimal),
		command("conf", "", "print what these programs are", configuration),
	}
}

// call is one run of a sub-command.
type call struct {
	flags  *cli.Flags
	raw    []string
	stdin  io.Reader
	out    *bufio.Writer
	stderr io.Writer
	args   []string
}

func newCall(name string, args []string, stdin io.Reader, stdout, stderr io.Writer) *call {
	return &call{flags: cli.New(name), raw: args, stdin: stdin, out: bufio.NewWriter(stdout), stderr: stderr}
}

// parse reads the options; the arguments must be as many as least to most, most < 0 meaning any number.
func (c *call) parse(least, most int) (err error) {
	c.args, err = c.flags.ParseArgs(c.raw, least, most)
	return err
}

// Options returns the options of the run.
func (c *call) Options() *cli.Flags { return c.flags }

// End prints what is left.
func (c *call) End(err error) error {
	if flushErr := c.out.Flush(); err == nil {
		err = flushErr
	}
	return err
}

// usageError is a command line that cannot be meant.
type usageError = cli.UsageError

// exitStatus is a failure with an exit code of its own.
type exitStatus = cli.ExitStatus

// Main runs the command with the arguments behind its name and returns the exit code: 0, or 1 after any failure.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := cli.Program[*call]{
		Name:     program,
		About:    "small tools around a key-value server for the Kyoto Tycoon protocols",
		Commands: commands(),
		New:      newCall,
		Notes:    []manual.Section{{Title: "EXIT STATUS", Text: []string{"0, or 1 after any failure."}}},
		See:      []string{"ktserver", "ktremotemgr", "kttimedmgr"},
	}
	return p.Main(ctx, args, stdin, stdout, stderr)
}
