// Command ktreplsql keeps a table in PostgreSQL or SQLite like the records of a server. "ktreplsql
// -h" explains it.
package main

import (
	"context"
	"os"

	"gotycoon/tools/replsql"
)

func main() {
	os.Exit(replsql.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
