package client_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// The examples are those of the package page, and talk to servers. Package compat/client of the
// server's module runs them: it starts the servers and names them in GOTYCOON_EXAMPLES, in this
// order, with blanks between them. Without servers they are only compiled.
var addr, lockAddr, counterAddr, sequenceAddr, quotaAddr string

func TestMain(m *testing.M) {
	flag.Parse()
	n, _ := fmt.Sscan(os.Getenv("GOTYCOON_EXAMPLES"), &addr, &lockAddr, &counterAddr, &sequenceAddr, &quotaAddr)
	if skip := flag.Lookup("test.skip"); n < 5 && skip.Value.String() == "" {
		_ = skip.Value.Set("^Example") // a string takes any value
	}
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, strings.TrimSpace(err.Error()))
		code = 1
	}
	os.Exit(code)
}
