// Package manual writes what is known of a program's options in other forms than its usage text: a manual page, and completion for
// shells. All of them come from the same tables, so none can be out of date.
package manual

import (
	"github.com/spf13/pflag"
)

// Program is a command line program: one with sub-commands, or one with options of its own.
type Program struct {
	Name     string
	About    string         // what it is, in half a sentence
	Args     string         // arguments behind the options
	Options  *pflag.FlagSet // nil: none of its own
	Commands []Command
	Words    []Command // further first arguments, which have no options
	Notes    []Section // for the manual page
	See      []string  // names of other pages of section 1
}

// Command is a sub-command.
type Command struct {
	Name    string
	Args    string // arguments behind its options
	Help    string // what it does, without a full stop
	Options *pflag.FlagSet
}

// Section is a chapter of the manual page.
type Section struct {
	Title string
	Text  []string // paragraphs
}

// option is what is shown of a flag.
type option struct {
	name  string
	value string // what stands for its value; empty: it has none
	help  string
}

// options returns those that users shall know, in the order of their definition.
func options(f *pflag.FlagSet) []option {
	if f == nil {
		return nil
	}
	var found []option
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		value, help := pflag.UnquoteUsage(flag)
		found = append(found, option{flag.Name, value, help})
	})
	return found
}
