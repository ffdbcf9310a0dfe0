package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gotycoon/server"
)

const configUsage = "usage: %s config check [option ...] [database ...]\n" +
	"       %[1]s config show [option ...] [database ...]\n" +
	"check tells what would keep a server with this configuration from running, without starting one. show prints the\n" +
	"configuration as a file, with where each value comes from. Both heed -config, the environment and the options.\n"

// configure carries out "ktserver config" and returns the exit code: 0, or 1 when the configuration
// is wrong.
func configure(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 || args[0] != "check" && args[0] != "show" {
		fmt.Fprintf(stderr, configUsage, server.Program)
		return 1
	}
	o, err := parse(args[1:])
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\n", server.Program, err)
		return 1
	case o.help || o.version:
		fmt.Fprintf(stdout, configUsage, server.Program)
		return 0
	case args[0] == "show":
		o.show(stdout)
		return 0
	}
	return o.examine(stdout, stderr)
}

// examine prints everything that is wrong, and what the user should know.
func (o *options) examine(stdout, stderr io.Writer) int {
	wrong, warnings, notes := server.Examine(o.Config)
	for _, note := range notes {
		fmt.Fprintf(stdout, "note: %s\n", note)
	}
	for _, warning := range warnings {
		fmt.Fprintf(stdout, "warning: %s\n", warning)
	}
	for _, err := range wrong {
		fmt.Fprintf(stderr, "%s: %v\n", server.Program, err)
	}
	if len(wrong) > 0 {
		return 1
	}
	if len(warnings) > 0 {
		fmt.Fprintln(stdout, "a server can start with this configuration, see the warnings")
		return 0
	}
	fmt.Fprintln(stdout, "the configuration is good")
	return 0
}

// show prints what is in effect in the form of a configuration file. Options that are not set and
// have no default are left out.
func (o *options) show(w io.Writer) {
	sections := map[string][]server.Setting{}
	order := []string{""}
	for _, s := range o.settings() {
		section := o.section(s.Name)
		if !slices.Contains(order, section) {
			order = append(order, section)
		}
		sections[section] = append(sections[section], s)
	}
	for _, section := range order {
		o.showSection(w, section, sections[section])
	}
}

func (o *options) showSection(w io.Writer, section string, settings []server.Setting) {
	headed := section == ""
	for _, s := range settings {
		if s.Value == "" && !s.Secret {
			continue
		}
		if !headed {
			fmt.Fprintf(w, "\n[%s]\n", section)
			headed = true
		}
		key := strings.TrimPrefix(s.Name, section+"-")
		if s.Secret {
			fmt.Fprintf(w, "# %s is set, and not shown # %s\n", key, s.Source)
			continue
		}
		fmt.Fprintf(w, "%s = %s # %s\n", key, o.inTOML(s), s.Source)
	}
}

// inTOML returns a value as a file has it.
func (o *options) inTOML(s server.Setting) string {
	if s.Name == databasesKey {
		quoted := make([]string, len(o.Databases))
		for i, name := range o.Databases {
			quoted[i] = quote(name)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	switch o.named(s.Name).kind() {
	case boolean:
		return s.Value
	case number:
		if _, err := strconv.ParseFloat(s.Value, 64); err == nil && !strings.HasPrefix(s.Value, ".") {
			return s.Value
		}
	}
	return quote(s.Value)
}

// quote returns a text as a TOML string.
func quote(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, "\\u%04X", r)
		default:
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

// changeRunning returns the options that can change while a server runs as they are in effect, but
// one with another value.
func changeRunning(effective []server.Setting, name, value string) (server.Config, error) {
	o := newOptions()
	for _, s := range effective {
		if !s.Reload || s.Source == fromDefault {
			continue
		}
		o.from = s.Source
		if err := o.flags.Set(s.Name, s.Value); err != nil {
			return server.Config{}, cause(err)
		}
	}
	r := o.named(name)
	switch {
	case r == nil && o.nearest(name, 2) != "":
		return server.Config{}, fmt.Errorf("there is no option %q, is it %q?", name, o.nearest(name, 2))
	case r == nil:
		return server.Config{}, fmt.Errorf("there is no option %q", name)
	case r.isAlias():
		return server.Config{}, fmt.Errorf("%s is a short form: change log-level", name)
	}
	o.from = fromRunning
	if err := o.flags.Set(name, value); err != nil {
		return server.Config{}, fmt.Errorf("%s: %w", name, cause(err))
	}
	o.Reload.Settings = o.settings()
	return o.Config, nil
}

// prepareReload lets the server change options, and read its configuration again if there is a
// file.
func (o *options) prepareReload(args []string) {
	o.Reload.Settings, o.Reload.File, o.Reload.Change = o.settings(), o.config, changeRunning
	if o.config == "" {
		return
	}
	o.Reload.Again = func() (server.Config, error) {
		next, err := parse(args)
		if err != nil {
			return server.Config{}, err
		}
		next.Reload.Settings = next.settings()
		return next.Config, nil
	}
}
