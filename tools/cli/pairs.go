package cli

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// pairSeparator stands between the two values of an option, where arguments cannot have it.
const pairSeparator = "\x00"

// pairs is the value of an option that takes a name and a value, and may be given more than once.
type pairs struct{ list *[][2]string }

// Pairs defines an option that takes two arguments, a name and a value, any number of times: -ah Accept text/plain.
func (f *Flags) Pairs(name, help string) *[][2]string {
	list := new([][2]string)
	f.Var(pairs{list}, name, help)
	return list
}

// Set adds a pair.
func (p pairs) Set(text string) error {
	name, value, ok := strings.Cut(text, pairSeparator)
	if !ok {
		return errors.New("must have a name and a value")
	}
	*p.list = append(*p.list, [2]string{name, value})
	return nil
}

// String is empty: there is no default.
func (pairs) String() string { return "" }

// Type stands for the values in the help text.
func (pairs) Type() string { return "name value" }

// valuesOf returns how many arguments an option takes.
func valuesOf(flag *pflag.Flag) int {
	if _, ok := flag.Value.(pairs); ok {
		return 2
	}
	return 1
}
