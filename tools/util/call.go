package util

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"gotycoon/tools/cli"
)

const program = "ktutilmgr"

// usageError is the error of a command line that makes no sense.
type usageError = cli.UsageError

// exitStatus is a failure with an exit code of its own.
type exitStatus = cli.ExitStatus

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

// parse reads the options. There must be at least least arguments and at most most; a negative most
// means any number.
func (c *call) parse(least, most int) (err error) {
	c.args, err = c.flags.ParseArgs(c.raw, least, most)
	return err
}

// input reads the file of the argument, or standard input.
func (c *call) input() ([]byte, error) {
	if len(c.args) == 0 {
		return io.ReadAll(c.stdin)
	}
	return readFile(c.args[0])
}

// readFile reads a whole file. The first line of its error is that of the original.
func readFile(name string) ([]byte, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%s: open error\n%s: %w", name, program, err)
	}
	return content, nil
}
