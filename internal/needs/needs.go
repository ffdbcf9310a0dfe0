// Package needs says what a test needs of the machine that it runs on. A test without it is
// skipped, and says what to install. Where GOTYCOON_CI is set, everything has been installed (make
// test-tools), and the test fails instead: nobody reads which tests were skipped there.
package needs

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Program returns the path of the first program that is installed. names are names that PATH leads
// to, or paths; debian is the package that has the program.
func Program(tb testing.TB, debian string, names ...string) string {
	tb.Helper()
	path := find(names)
	if path == "" {
		Missing(tb, strings.Join(names, " or "), debian)
	}
	return path
}

// Perhaps is Program for a test that goes on without the program: it then returns nothing.
func Perhaps(tb testing.TB, debian string, names ...string) string {
	tb.Helper()
	path := find(names)
	if path == "" {
		tb.Log(missing(tb, strings.Join(names, " or "), debian))
	}
	return path
}

// Missing ends a test for which something is not installed.
func Missing(tb testing.TB, what, debian string) {
	tb.Helper()
	tb.Skip(missing(tb, what, debian))
}

// Chromium returns the path of a browser.
func Chromium(tb testing.TB) string {
	tb.Helper()
	if path := os.Getenv("GOTYCOON_CHROMIUM"); path != "" {
		return path
	}
	return Program(tb, "chromium", "chromium", "chromium-browser", "google-chrome")
}

func find(names []string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// missing says what to install, or ends the test where everything is said to be installed.
func missing(tb testing.TB, what, debian string) string {
	tb.Helper()
	text := fmt.Sprintf("%s is not here: install Debian's package %s ('make test-tools' does)", what, debian)
	if os.Getenv("GOTYCOON_CI") != "" {
		tb.Fatal(text)
	}
	return text
}
