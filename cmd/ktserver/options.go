package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"gotycoon/server"
	"gotycoon/tools/cli"
)

// options are the options of one command line, with their values.
type options struct {
	server.Config
	help, version bool
	config        string // path of the file, empty for none

	flags *cli.Flags
	table []*option

	from          string // where the options that are being set come from
	databasesFrom string
}

// option is a row of the table in table.go, and where the option is set. Command line, environment,
// configuration file, "config show", help text, manual page, completion, the table of README.md and
// docs/configuration.md come from these rows.
//
// An option is the pflag.Value of its flag: it remembers what it is set to, and by whom.
type option struct {
	name  string
	short string      // its letter, empty for none
	value pflag.Value // its type, and the field of server.Config that it sets
	help  string      // a word in backquotes stands for the value

	// standard is the value of an option that is not set, as the help text has it. absent says in
	// words what holds then, where that is no value, or is not in the help text.
	standard, absent string

	section     string // the table of a configuration file that it may stand in, empty for none
	reload      bool   // it can change while the server runs
	commandLine bool   // neither a file nor the environment can have it

	text   string // the value that was set
	source string // of the value; fromDefault: it was not set
	o      *options
}

// newOptions returns all options with their defaults.
func newOptions() *options {
	o := &options{Config: server.DefaultConfig(), from: fromDefault, databasesFrom: fromDefault, flags: cli.New(server.Program)}
	o.table = o.rows()
	for _, r := range o.table {
		r.o, r.source = o, fromDefault
		help := r.help
		if r.standard != "" {
			help += " (default " + r.standard + ")"
		}
		flag := o.flags.VarPF(r, r.name, r.short, help)
		if r.kind() == boolean {
			flag.NoOptDefVal = "true"
		}
	}
	return o
}

// Set implements pflag.Value.
func (r *option) Set(text string) error {
	if err := r.value.Set(text); err != nil {
		return err
	}
	r.text, r.source = text, r.o.from
	return nil
}

// String implements pflag.Value.
func (r *option) String() string {
	if r == nil || r.value == nil { // pflag asks a zero value
		return ""
	}
	return r.value.String()
}

// Type implements pflag.Value.
func (r *option) Type() string { return r.value.Type() }

// usual is the value of an option that is not set, empty for none.
func (r *option) usual() string {
	switch {
	case r.standard != "":
		return r.standard
	case r.kind() == boolean:
		return "false"
	}
	return r.o.flags.Lookup(r.name).DefValue
}

// secret reports whether the value must not be shown.
func (r *option) secret() bool { return server.SecretOption(r.name) }

// isAlias reports whether the option only gives another one a value: a configuration is shown
// without it.
func (r *option) isAlias() bool {
	_, is := r.value.(alias)
	return is
}

// kind is what can be written behind the name of an option.
type kind int

const (
	text kind = iota
	number
	boolean
)

// String is the kind in messages.
func (k kind) String() string { return [...]string{"a text", "a number", "true or false"}[k] }

func (r *option) kind() kind {
	switch r.Type() {
	case "bool":
		return boolean
	case "number":
		return number
	}
	return text
}

// parse reads the arguments, and what counts less than they do. Its errors end the program.
func parse(args []string) (*options, error) {
	o := newOptions()
	if err := o.flags.Parse(args); err != nil {
		return nil, usageError{err}
	}
	if o.help || o.version {
		return o, nil
	}
	return layers(args, o)
}

// usageError is a mistake in a command line, about which the list of options may help.
type usageError struct{ err error }

// Error adds how to get help.
func (e usageError) Error() string {
	return fmt.Sprintf("%v\nusage: %s [option ...] [database ...]\n"+
		"Options come first; \"--\" ends them. \"%[2]s --help\" explains them.", e.err, server.Program)
}

// check finds values that no server can have.
func (o *options) check() error {
	switch {
	case o.Port < 1:
		return fmt.Errorf("-port: must be at least 1")
	case o.Threads < 1:
		return fmt.Errorf("-th: must be at least 1")
	case o.MasterPort < 1:
		return fmt.Errorf("-mport: must be at least 1")
	case o.databasesFrom == fromDefault && server.IsEngineURL(o.Plugins.Database):
		o.Databases = nil // the engine knows their names
	case o.databasesFrom == fromDefault && o.flags.Changed("pldb"):
		return fmt.Errorf("-pldb: needs the name of a database")
	}
	switch {
	case o.flags.NArg() > 0 && o.flags.Arg(0) == "-" && o.flags.ArgsLenAtDash() < 0:
		return fmt.Errorf("the database \"-\" must come after \"--\" or another database")
	}
	if o.flags.ArgsLenAtDash() < 0 {
		if late := o.flags.Late(); late != "" {
			return fmt.Errorf("%s stands behind a database: options come first", late)
		}
	}
	return nil
}

// named returns an option that files and the environment can set, nil if there is none of the name.
func (o *options) named(name string) *option {
	if f := o.flags.Lookup(name); f != nil {
		if r := f.Value.(*option); !r.commandLine {
			return r
		}
	}
	return nil
}

// shown returns the options that a configuration has, in the order of the table.
func (o *options) shown() []*option {
	var shown []*option
	for _, r := range o.table {
		if !r.commandLine && !r.isAlias() {
			shown = append(shown, r)
		}
	}
	return shown
}

// nearest returns the name that is like a misspelt one, empty if there is none within so many
// letters.
func (o *options) nearest(name string, within int) string {
	names := []string{}
	for _, r := range o.shown() {
		names = append(names, r.name)
	}
	return cli.Nearest(name, append(names, databasesKey), within)
}
