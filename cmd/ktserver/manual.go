package main

import (
	"fmt"
	"io"

	"gotycoon/server"
	"gotycoon/tools/cli"
	"gotycoon/tools/manual"
)

// describes tells whether a first argument asks for the manual page or a shell's completion. No database can have such a name.
func describes(arg string) bool { return arg == "man" || arg == "completion" }

// describe prints what the arguments ask for and returns the exit code.
func describe(args []string, stdout, stderr io.Writer) int {
	o := newOptions()
	if err := cli.WriteManual(o.manual(), args, stdout); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", server.Program, err)
		return 1
	}
	return 0
}

func (o *options) manual() manual.Program {
	return manual.Program{
		Name:    server.Program,
		About:   about,
		Args:    "[database ...]",
		Options: o.flags.FlagSet,
		Words:   cli.ManualWords()[1:], // the version is an option here
		Notes: []manual.Section{
			{Title: "DATABASES", Text: []string{databasesHelp}},
			{Title: "SIGNALS", Text: []string{signalsHelp}},
			{Title: "EXIT STATUS", Text: []string{
				"0 after a stop by a signal, 1 after any failure: a wrong option, a database that cannot be opened, a log that cannot be written.",
			}},
		},
		See: []string{"ktremotemgr", "kttimedmgr", "ktutilmgr"},
	}
}
