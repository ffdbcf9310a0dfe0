// Command ktserver is the key-value server: databases behind HTTP and the binary protocol on one
// port.
//
// Options have one or two dashes and come before the first database; "ktserver --help" lists them.
// The exit code is 0 after a stop by a signal and 1 after any failure.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"gotycoon/server"
	"gotycoon/tools/cli"
	"gotycoon/tools/manual"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && describes(args[0]) {
		return describe(args, stdout, stderr)
	}
	if len(args) > 0 && args[0] == accessCommand {
		return runAccess(args[1:], os.Stdin, stdout, stderr)
	}
	if len(args) > 0 && args[0] == "config" {
		return configure(args[1:], stdout, stderr)
	}
	if len(args) == 1 && (args[0] == "version" || args[0] == "help") { // as with the other programs
		args = []string{"--" + args[0]}
	}
	o, err := parse(args)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\n", server.Program, err)
		return 1
	case o.help:
		fmt.Fprint(stdout, o.usage())
		return 0
	case o.version:
		cli.WriteVersion(stdout)
		return 0
	}
	o.prepareReload(args)
	return server.Run(context.Background(), o.Config, stdout, stderr)
}

const (
	about         = "a key-value server for the Kyoto Tycoon protocols"
	databasesHelp = "A database is a file (a.kch a.kct a.kcd a.kcf a.kcx), or in memory: \":\" hash, \"*\" cache, \"%\" tree, \"-\" and \"+\"\n" +
		"plain hash and tree. Parameters follow after \"#\": a.kct#ktopts=p. Without any there is one \":\"."
	signalsHelp = "TERM, INT, USR2 stop; USR1 listens again and continues in a new log file; HUP stops, or does as USR1 with -dmn,\n" +
		"or with -config has the file read again, which changes what can be changed while the server runs."
)

func (o *options) usage() string {
	return fmt.Sprintf("%s - %s\n\n"+
		"usage: %[1]s [option ...] [database ...]\n\n%[3]s\n"+
		"Options may have one dash or two. Numbers may end in k, m, g, t, p, e (powers of 1024).\n%[4]s\nSignals: %[5]s\n",
		server.Program, about, o.flags.FlagUsages(), databasesHelp, signalsHelp)
}

// describes reports whether a first argument asks for the manual page or a shell's completion. No
// database can have such a name.
func describes(arg string) bool { return arg == "man" || arg == "completion" }

// describe prints what the arguments ask for and returns the exit code.
func describe(args []string, stdout, stderr io.Writer) int {
	page := manual.Program{
		Name:    server.Program,
		About:   about,
		Args:    "[database ...]",
		Options: newOptions().flags.FlagSet,
		Words:   cli.ManualWords(),
		Notes: []manual.Section{
			{Title: "DATABASES", Text: []string{databasesHelp}},
			{Title: "SIGNALS", Text: []string{signalsHelp}},
			{Title: "EXIT STATUS", Text: []string{
				"0 after a stop by a signal, 1 after any failure: a wrong option, a database that cannot be opened, " +
					"a log that cannot be written.",
			}},
		},
		See: []string{"ktremotemgr", "kttimedmgr", "ktutilmgr"},
	}
	if err := cli.WriteManual(page, args, stdout); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", server.Program, err)
		return 1
	}
	return 0
}
