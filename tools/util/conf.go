package util

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"gotycoon/tools/cli"
)

// errNoLibrary is what -i and -l get.
var errNoLibrary = errors.New("conf: there is no C library to compile or link with: programs talk to the server over the network")

// configuration prints what these programs are.
func configuration(_ context.Context, c *call) error {
	version := c.flags.Bool("v", false, "print the version number")
	include := c.flags.Bool("i", false, "print options for a C compiler (there are none)")
	link := c.flags.Bool("l", false, "print options for a linker (there are none)")
	where := c.flags.Bool("p", false, "print the directory of the programs")
	if err := c.parse(0, 0); err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	switch dir := filepath.Dir(exe); {
	case *version:
		_, err = fmt.Fprintln(c.out, compatible())
	case *include || *link:
		err = errNoLibrary
	case *where:
		_, err = fmt.Fprintln(c.out, dir)
	default:
		_, err = fmt.Fprintf(c.out, "compatible: %s\nprograms: %s\nbuilt: %s %s/%s\n", cli.Version, dir, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	}
	return err
}

// compatible is the version of the original that scripts look for.
func compatible() string { return strings.Fields(cli.Version)[2] }
