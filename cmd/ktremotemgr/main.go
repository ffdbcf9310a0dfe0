// Command ktremotemgr is a client of a running server for people and scripts. "ktremotemgr --help"
// lists what it does. The exit code is 0, or 1 after any failure, or that of a command which it has
// run.
package main

import (
	"context"
	"os"

	"gotycoon/tools/remote"
)

func main() {
	os.Exit(remote.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
