// Package cli is the command line that users of the original have in their scripts: long options
// with one dash or two (-port 1978, --port 1978, -port=1978), all of them before the first argument
// that is no option, and numbers with units.
//
//	f := cli.New("ktremotemgr get")
//	port := f.Integer("port", 1978, "port of the server")
//	err := f.Parse(args) // pflag.ErrHelp for -h and --help
//	fmt.Print(f.FlagUsages())
package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"gotycoon/internal/version"
)

// Version is the first line that --version prints: scripts and clients know the original by it.
const Version = "Kyoto Tycoon 0.9.56b (2.19) on Linux (Kyoto Cabinet 1.2.76a)"

// WriteVersion prints the version that scripts look for, and below it what this program is.
func WriteVersion(w io.Writer) {
	fmt.Fprintf(w, "%s\n%s\n", Version, version.Current())
}

// Flags are the options of one command.
type Flags struct {
	*pflag.FlagSet
}

// New returns an empty set of options. name is for messages.
func New(name string) *Flags {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SetInterspersed(false)
	f.SortFlags = false
	f.Usage = func() {}
	return &Flags{f}
}

// Parse reads options up to the first argument that is no option, or "--". The rest is Args.
func (f *Flags) Parse(args []string) error {
	return f.explained(f.FlagSet.Parse(f.doubleDashes(args)))
}

// doubleDashes gives every option two dashes, because pflag understands no other form, and leaves
// values and arguments as they are.
func (f *Flags) doubleDashes(args []string) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" || arg == "-" || !strings.HasPrefix(arg, "-") {
			return append(out, args[i:]...)
		}
		name := strings.TrimPrefix(arg[1:], "-") // "---" is no option, and does not end them either
		if name == "h" {
			name = "help"
		}
		out = append(out, "--"+name)
		name, _, joined := strings.Cut(name, "=")
		flag := f.Lookup(name)
		if flag == nil || flag.NoOptDefVal != "" || joined {
			continue
		}
		values := args[i+1 : min(i+1+valuesOf(flag), len(args))]
		if i += len(values); len(values) > 0 {
			out = append(out, strings.Join(values, pairSeparator))
		}
	}
	return out
}

// Integer defines an option with a whole number.
func (f *Flags) Integer(name string, value int64, help string) *int64 {
	f.Var(Int(&value), name, help)
	return &value
}

// Bytes defines an option with a size.
func (f *Flags) Bytes(name string, value int64, help string) *int64 {
	f.Var(Size(&value), name, help)
	return &value
}

// Seconds defines an option with a length of time in seconds, a fraction allowed.
func (f *Flags) Seconds(name string, value time.Duration, help string) *time.Duration {
	f.Var(Duration(&value), name, help)
	return &value
}

// Number defines an option whose number is given to set.
func (f *Flags) Number(name string, set func(float64), help string) {
	f.Var(Number(set), name, help)
}

// FlagUsages explains the options, a line each, with one dash as users write them. A word in
// backquotes within a help text stands for the value.
func (f *Flags) FlagUsages() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		value, help := pflag.UnquoteUsage(flag)
		fmt.Fprintf(w, "  %s\t%s\n", strings.TrimRight("-"+flag.Name+" "+value, " "), help)
	})
	_ = w.Flush() // into memory
	return b.String()
}
