// Package util is ktutilmgr: small tools around a server. Main is the command, and the table of its
// sub-commands is in commands.
package util

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gotycoon/internal/version"
	"gotycoon/tools/cli"
)

// commands returns the table of sub-commands, in the order of the usage text.
func commands() []cli.Command[*call] {
	command := cli.NewCommand[*call]
	return []cli.Command[*call]{
		command("date", "", "print a time in another form", printDate),
		command("http", "url", "make an HTTP request and print the answer", request),
		command("rpc", "procedure [name value ...]", "call a procedure of a server", rpc),
		command("ulog", "directory", "print an update log, or list its files (-uf)", updateLog),
		command("enc", "[file]", "encode or decode (-d): Base64, or another form", encode),
		command("hex", "[file]", "print hexadecimal digits, or read them (-d)", hexadecimal),
		command("engine", "init|status|check|load|renew|drop url [database ...]", "set up a PostgreSQL that several servers share, and look after it", engineTool),
		command("conf", "", "print what these programs are", configuration),
	}
}

// Main runs ktutilmgr with the arguments that follow the program's name. It returns the exit code:
// 0, or 1 after any failure.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := cli.Program[*call]{
		Name:     program,
		About:    "small tools around a key-value server for the Kyoto Tycoon protocols",
		Commands: commands(),
		New:      newCall,
		See:      []string{"ktserver", "ktremotemgr", "kttimedmgr"},
	}
	return p.Main(ctx, args, stdin, stdout, stderr)
}

// configuration prints what the programs are.
func configuration(_ context.Context, c *call) error {
	number := c.flags.Bool("v", false, "print the version number")
	include := c.flags.Bool("i", false, "print options for a C compiler (there are none)")
	link := c.flags.Bool("l", false, "print options for a linker (there are none)")
	where := c.flags.Bool("p", false, "print the directory of the programs")
	if err := c.parse(0, 0); err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	switch dir := filepath.Dir(exe); {
	case *number:
		_, err = fmt.Fprintln(c.out, compatible())
	case *include || *link:
		err = errNoLibrary
	case *where:
		_, err = fmt.Fprintln(c.out, dir)
	default:
		built := version.Current()
		_, err = fmt.Fprintf(c.out, "compatible: %s\nprograms: %s\nbuilt: %s %s\nversion: %s\nrevision: %s\n",
			cli.Version, dir, built.Go, built.System, built.Version, built.Revision)
	}
	return err
}

// errNoLibrary is the error of -i and -l.
var errNoLibrary = errors.New("conf: there is no C library to compile or link with: programs talk to the server over the network")

// compatible is the version of the original that scripts look for.
func compatible() string { return strings.Fields(cli.Version)[2] }

// Options returns the options of the run.
func (c *call) Options() *cli.Flags { return c.flags }

// End prints the buffered output. It returns err, or else the error of the output.
func (c *call) End(err error) error {
	if flushErr := c.out.Flush(); err == nil {
		err = flushErr
	}
	return err
}
