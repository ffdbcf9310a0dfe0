package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"gotycoon/tools/manual"
)

// Program is a command line tool whose first argument is the name of a sub-command. C is one run of one of them.
type Program[C Call] struct {
	Name     string
	About    string // a line for the usage text
	Commands []Command[C]
	Notes    []manual.Section // of the manual page
	See      []string         // names of other manual pages

	// New prepares a run with the arguments behind the name of the sub-command.
	New func(name string, args []string, stdin io.Reader, stdout, stderr io.Writer) C
}

// Command is one sub-command.
type Command[C Call] struct {
	Name string
	Args string // arguments behind the options, for the usage text
	Help string
	Run  func(ctx context.Context, c C) error
}

// Call is one run of a sub-command.
type Call interface {
	// Options returns its options, for the usage text.
	Options() *Flags
	// End gives back what the run has used, prints what is left to print, and returns the first error: that of the run, or its own.
	End(err error) error
}

// UsageError is a command line that cannot be meant.
type UsageError string

// Error says what is wrong.
func (e UsageError) Error() string { return string(e) }

// ExitStatus is a failure with an exit code of its own, about which nothing is left to say.
type ExitStatus int

// Error names the code.
func (e ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Main runs the program with the arguments behind its name and returns the exit code: 0, or 1 after any failure but an ExitStatus.
func (p *Program[C]) Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		p.usage(stderr, p.Commands)
		return 1
	}
	switch strings.TrimLeft(args[0], "-") {
	case "version":
		fmt.Fprintln(stdout, Version)
		return 0
	case "help", "h", "usage":
		p.usage(stdout, p.Commands)
		return 0
	case "man", "completion":
		return p.write(ctx, args, stdout, stderr)
	}
	for _, cmd := range p.Commands {
		if cmd.Name == args[0] {
			c := p.New(cmd.Name, args[1:], stdin, stdout, stderr)
			return p.tell(cmd, c, c.End(cmd.Run(ctx, c)), stdout, stderr)
		}
	}
	p.usage(stderr, p.Commands)
	fmt.Fprintf(stderr, "\n%s: unknown command\n", args[0])
	return 1
}

// tell reports how a run has ended and returns the exit code.
func (p *Program[C]) tell(cmd Command[C], c C, err error, stdout, stderr io.Writer) int {
	var wrong UsageError
	var exit ExitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case errors.Is(err, pflag.ErrHelp):
		p.usage(stdout, []Command[C]{cmd})
		fmt.Fprintf(stdout, "\n%s", c.Options().FlagUsages())
		return 0
	case errors.As(err, &wrong):
		p.usage(stderr, []Command[C]{cmd})
		fmt.Fprintf(stderr, "\n%s: %v (\"%s %[1]s --help\" explains the options)\n", cmd.Name, wrong, p.Name)
	default:
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
	}
	return 1
}

func (p *Program[C]) usage(w io.Writer, cmds []Command[C]) {
	fmt.Fprintf(w, "%s: %s\n\nusage:\n", p.Name, p.About)
	for _, cmd := range cmds {
		line := strings.TrimSpace(cmd.Name + " [option ...] " + cmd.Args)
		fmt.Fprintf(w, "  %s %-42s %s\n", p.Name, line, cmd.Help)
	}
	if len(cmds) > 1 {
		fmt.Fprintf(w, "  %s %-42s print the version\n\n\"%[1]s COMMAND --help\" explains the options of a command.\n", p.Name, "version")
	}
}

// ParseArgs reads the options; the arguments behind them, which it returns, must be as many as least to most, most < 0 meaning any
// number. The error is pflag.ErrHelp or a UsageError.
func (f *Flags) ParseArgs(args []string, least, most int) ([]string, error) {
	err := f.Parse(args)
	n := f.NArg()
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return nil, err
	case err != nil:
		return nil, UsageError(err.Error())
	case n < least:
		return nil, UsageError("an argument is missing")
	case most >= 0 && n > most:
		return nil, UsageError("there are too many arguments")
	}
	return f.Args(), nil
}
