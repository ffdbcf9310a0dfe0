package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"gotycoon/tools/manual"
)

// Program is a command line tool whose first argument is the name of a sub-command. C is one run of
// one of them.
type Program[C Call] struct {
	Name     string
	About    string // a line for the usage text
	Commands []Command[C]
	Exit     string   // what the exit status says; empty: 0, or 1 after any failure
	See      []string // names of other manual pages

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

// NewCommand makes a row of a table of sub-commands.
func NewCommand[C Call](name, args, help string, run func(context.Context, C) error) Command[C] {
	return Command[C]{Name: name, Args: args, Help: help, Run: run}
}

// form is how the command is written.
func (c *Command[C]) form() string { return strings.TrimSpace(c.Name + " [option ...] " + c.Args) }

// Call is one run of a sub-command.
type Call interface {
	// Options returns its options, for the usage text.
	Options() *Flags
	// End gives back what the run has used, prints what is left to print, and returns the first
	// error: err, or its own.
	End(err error) error
}

// UsageError is a mistake in a command line.
type UsageError string

// Error says what is wrong.
func (e UsageError) Error() string { return string(e) }

// ExitStatus is a failure with an exit code of its own. The run has printed what is to be said.
type ExitStatus int

// Error names the code.
func (e ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Main runs the program with the arguments behind its name and returns the exit code: 0, that of an
// ExitStatus, or 1 after any other failure.
func (p *Program[C]) Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		p.usage(stderr, p.Commands)
		return 1
	}
	switch strings.TrimLeft(args[0], "-") {
	case "version":
		WriteVersion(stdout)
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
	p.mistake(stderr, fmt.Sprintf("unknown command %s%s", args[0], DidYouMean(args[0], "", p.names())),
		"COMMAND [option ...] [argument ...]", "--help", "lists the commands")
	return 1
}

// names returns all that can be the first argument.
func (p *Program[C]) names() []string {
	var names []string
	for _, cmd := range p.Commands {
		names = append(names, cmd.Name)
	}
	for _, word := range append(ManualWords(), manual.Command{Name: "help"}) {
		names = append(names, word.Name)
	}
	return names
}

// mistake prints what is wrong with a command line, and how to go on. The original prints all of
// its usage text: scripts may look for the line "usage:", so there is one, below the cause.
func (p *Program[C]) mistake(w io.Writer, cause, form, more, explains string) {
	fmt.Fprintf(w, "%s: %s\n\nusage:\n  %[1]s %[3]s\n\n\"%[1]s %[4]s\" %[5]s.\n", p.Name, cause, form, more, explains)
}

// tell prints how a run has ended and returns the exit code.
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
		p.mistake(stderr, fmt.Sprintf("%s: %v", cmd.Name, wrong), cmd.form(), cmd.Name+" --help", "explains the options")
	default:
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
	}
	return 1
}

func (p *Program[C]) usage(w io.Writer, cmds []Command[C]) {
	fmt.Fprintf(w, "%s: %s\n\nusage:\n", p.Name, p.About)
	for _, cmd := range cmds {
		fmt.Fprintf(w, "  %s %-42s %s\n", p.Name, cmd.form(), cmd.Help)
	}
	if len(cmds) > 1 {
		fmt.Fprintf(w, "  %s %-42s print the version\n\n\"%[1]s COMMAND --help\" explains the options of a command.\n", p.Name, "version")
	}
}

// ParseArgs reads the options and returns the arguments behind them: at least least, at most most
// unless most is below 0. The error is pflag.ErrHelp or a UsageError.
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
		if late := f.Late(); late != "" {
			return nil, UsageError("options stand before the first argument, not behind it: " + late)
		}
		return nil, UsageError("there are too many arguments")
	}
	return f.Args(), nil
}

// Late returns the first argument that looks like an option, empty if there is none.
func (f *Flags) Late() string {
	for _, arg := range f.Args() {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && f.Lookup(name) != nil {
			return arg
		}
	}
	return ""
}

// write prints the manual page ("man") or the completion for a shell ("completion bash"), and
// returns the exit code.
func (p *Program[C]) write(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if err := WriteManual(p.manual(ctx), args, stdout); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return 1
	}
	return 0
}

// WriteManual prints what the arguments ask for: "man" the manual page of section 1, "completion"
// and the name of a shell what the shell reads.
func WriteManual(m manual.Program, args []string, w io.Writer) error {
	switch {
	case args[0] == "man" && len(args) == 1:
		return m.Page(w)
	case args[0] == "completion" && len(args) == 2:
		return m.Completion(w, args[1])
	}
	return UsageError(fmt.Sprintf("it is \"%s man\", or \"%[1]s completion\" and one of %s", m.Name, strings.Join(manual.Shells(), ", ")))
}

// manual describes the program. It finds the options of a sub-command by a run with --help, which
// defines them and does nothing else.
func (p *Program[C]) manual(ctx context.Context) manual.Program {
	exit := manual.Section{Title: "EXIT STATUS", Text: []string{cmp.Or(p.Exit, "0, or 1 after any failure.")}}
	m := manual.Program{Name: p.Name, About: p.About, Notes: []manual.Section{exit}, See: p.See, Words: ManualWords()}
	for _, cmd := range p.Commands {
		c := p.New(cmd.Name, []string{"--help"}, strings.NewReader(""), io.Discard, io.Discard)
		_ = c.End(cmd.Run(ctx, c)) // it is pflag.ErrHelp
		m.Commands = append(m.Commands, manual.Command{Name: cmd.Name, Args: cmd.Args, Help: cmd.Help, Options: c.Options().FlagSet})
	}
	return m
}

// ManualWords are the first arguments that every program takes beside its sub-commands.
func ManualWords() []manual.Command {
	return []manual.Command{
		{Name: "version", Help: "print the version"},
		{Name: "man", Help: "print this manual page"},
		{Name: "completion", Args: "shell", Help: "print what bash, zsh or fish read to complete this command"},
	}
}
