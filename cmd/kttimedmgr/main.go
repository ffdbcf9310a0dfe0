// Command kttimedmgr works on database files while no server has them open. "kttimedmgr --help"
// lists what it does. The exit code is 0, or 1 after any failure.
package main

import (
	"context"
	"os"

	"gotycoon/tools/timed"
)

func main() {
	os.Exit(timed.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
