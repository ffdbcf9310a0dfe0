// Command ktserver is the key-value server: databases behind HTTP and the binary protocol on one port.
//
// Options have one or two dashes and come before the first database; "ktserver --help" lists them. The exit code is 0
// after a stop by a signal and 1 after any failure.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"gotycoon/server"
	"gotycoon/tools/cli"
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
	o, err := parse(args)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\n", server.Program, err)
		return 1
	case o.help:
		fmt.Fprint(stdout, o.usage())
		return 0
	case o.version:
		fmt.Fprintln(stdout, cli.Version)
		return 0
	}
	o.prepareReload(args)
	return server.Run(context.Background(), o.Config, stdout, stderr)
}
