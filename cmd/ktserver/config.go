package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"gotycoon/server"
)

// Sources of an option's value. A later source counts more than an earlier one.
const (
	fromDefault     = "default"
	fromEnvironment = "environment" // above a file, whose name is its path and the line
	fromCommandLine = "command line"
	fromRunning     = "config set" // while the server runs
)

const (
	configVariable    = variablePrefix + "CONFIG"
	databasesVariable = variablePrefix + "DATABASES"
)

// layers puts the options together: the file, then the environment, then the command line, each
// over the ones before. The arguments have been read into first already, because they may name the
// file.
func layers(args []string, first *options) (*options, error) {
	o := newOptions()
	path, named := first.config, first.flags.Changed("config")
	if !named {
		path = os.Getenv(configVariable)
	}
	if path != "" {
		if err := o.readConfig(path); err != nil {
			return nil, err
		}
	}
	if err := o.readEnvironment(os.Environ()); err != nil {
		return nil, err
	}
	o.from = fromCommandLine
	if err := o.flags.Parse(args); err != nil {
		return nil, usageError{err}
	}
	o.config = path
	if names := o.flags.Args(); len(names) > 0 {
		o.setDatabases(names)
	}
	if err := o.check(); err != nil {
		return nil, usageError{err}
	}
	return o, nil
}

// setDatabases replaces the databases by the databases of a source that counts more.
func (o *options) setDatabases(names []string) {
	o.Databases, o.databasesFrom = slices.Clone(names), o.from
}

// readEnvironment takes the options from variables: GOTYCOON_PORT is -port, GOTYCOON_DATABASES
// lists databases with blanks between them. Other programs may have variables with the same
// beginning, so an unknown name is an error only if it is nearly the name of an option.
func (o *options) readEnvironment(environment []string) error {
	o.from = fromEnvironment
	slices.Sort(environment) // so that the same environment always means the same
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		word, ours := strings.CutPrefix(name, variablePrefix)
		if !ours || name == configVariable {
			continue
		}
		if name == databasesVariable {
			o.setDatabases(strings.Fields(value))
			continue
		}
		if err := o.takeVariable(strings.ToLower(strings.ReplaceAll(word, "_", "-")), value); err != nil {
			return fmt.Errorf("%s in the environment: %w", name, err)
		}
	}
	return nil
}

func (o *options) takeVariable(name, value string) error {
	if o.named(name) != nil {
		if err := o.flags.Set(name, value); err != nil {
			return cause(err)
		}
		return nil
	}
	const fewLetters = 4 // shorter words are near to each other without being meant
	if near := o.nearest(name, 1); near != "" && len(name) >= fewLetters {
		return fmt.Errorf("there is no such option; %s is one", variable(near))
	}
	return nil
}

const variablePrefix = "GOTYCOON_"

// variable is the name of the environment variable that sets an option.
func variable(name string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// settings returns the effective configuration for the server, which shows it to administrators and
// compares it when the file is read again.
func (o *options) settings() []server.Setting {
	all := []server.Setting{{Name: databasesKey, Value: strings.Join(o.Databases, " "), Source: o.databasesFrom}}
	for _, r := range o.shown() {
		s := server.Setting{Name: r.name, Value: r.text, Source: r.source, Reload: r.reload, Secret: r.secret()}
		if r.source == fromDefault {
			s.Value = r.usual()
		}
		if s.Secret {
			s.Value = ""
		}
		if s.Name == "pldb" {
			s.Value = server.RedactedURL(s.Value)
		}
		all = append(all, s)
	}
	return all
}
