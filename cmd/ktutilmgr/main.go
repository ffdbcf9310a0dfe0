// Command ktutilmgr has small tools: dates, HTTP requests, calls of a server's procedures, update
// logs, encodings. "ktutilmgr --help" lists them. The exit code is 0, or 1 after any failure.
package main

import (
	"context"
	"os"

	"gotycoon/tools/util"
)

func main() {
	os.Exit(util.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
