package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"gotycoon/tools/manual"
)

// write prints the manual page ("man") or the completion for a shell ("completion bash") and returns the exit code.
func (p *Program[C]) write(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if err := WriteManual(p.manual(ctx), args, stdout); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return 1
	}
	return 0
}

// WriteManual prints what the arguments ask for: "man" the manual page of section 1, "completion" with a shell's name what that
// shell reads.
func WriteManual(m manual.Program, args []string, w io.Writer) error {
	switch {
	case args[0] == "man" && len(args) == 1:
		return m.Page(w)
	case args[0] == "completion" && len(args) == 2:
		return m.Completion(w, args[1])
	}
	return UsageError(fmt.Sprintf("it is \"%s man\", or \"%[1]s completion\" and one of %s", m.Name, strings.Join(manual.Shells(), ", ")))
}

// manual describes the program. What the options of a sub-command are, a run that asks for help tells.
func (p *Program[C]) manual(ctx context.Context) manual.Program {
	m := manual.Program{Name: p.Name, About: p.About, Notes: p.Notes, See: p.See, Words: ManualWords()}
	for _, cmd := range p.Commands {
		c := p.New(cmd.Name, []string{"--help"}, strings.NewReader(""), io.Discard, io.Discard)
		_ = c.End(cmd.Run(ctx, c)) // it is pflag.ErrHelp
		m.Commands = append(m.Commands, manual.Command{Name: cmd.Name, Args: cmd.Args, Help: cmd.Help, Options: c.Options().FlagSet})
	}
	return m
}

// ManualWords are the first arguments with which every program describes itself.
func ManualWords() []manual.Command {
	return []manual.Command{
		{Name: "version", Help: "print the version"},
		{Name: "man", Help: "print this manual page"},
		{Name: "completion", Args: "shell", Help: "print what bash, zsh or fish read to complete this command"},
	}
}
