package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gotycoon/server"
)

// Properties of an option that are kept beside its definition.
const (
	sectionNote = "section" // the table of a configuration file that it may stand in
	reloadNote  = "reload"  // it can change while the server runs
	aliasNote   = "alias"   // it sets another option: is not shown
)

// newOptions returns all options with their defaults.
func newOptions() *options {
	o := &options{Config: server.DefaultConfig(), from: fromDefault, databasesFrom: fromDefault}
	o.define()
	o.flags.VisitAll(func(f *pflag.Flag) { f.Value = &recorded{Value: f.Value, o: o, flag: f, source: fromDefault} })
	return o
}

// recorded is the value of an option that remembers what it was set to, and by whom.
type recorded struct {
	pflag.Value
	o      *options
	flag   *pflag.Flag
	text   string
	source string
}

// Set implements pflag.Value.
func (r *recorded) Set(text string) error {
	if err := r.Value.Set(text); err != nil {
		return err
	}
	r.text, r.source = text, r.o.from
	return nil
}

func (o *options) record(name string) *recorded { return o.flags.Lookup(name).Value.(*recorded) }

// describeTable adds what configuration files and reloads need to know of options. One that is not mentioned stands outside of
// tables, or in that of its first word where it shares that with another: counter-port is port in [counter].
func (o *options) describeTable() {
	for section, names := range map[string][]string{
		"logging":     {"log", "log-format", "log-level", "li", "ls", "le", "lz"},
		"update-log":  {"ulog", "ulim", "uasi", "sid"},
		"replication": {"mhost", "mport", "rts", "riv", "gap-continue", "copy-limit", "removals", "slave-read-only"},
		"files":       {"ord", "oat", "oas", "onl", "otl", "onr", "as-is", "checkpoint", "asi", "ash"},
		"snapshots":   {"bgs", "bgsi", "bgsc"},
		"script":      {"scr", "scrtime", "scrmem"},
		"plugins":     {"plsv", "plex", "pldb"},
		"process":     {"dmn", "pid", "cmd"},
	} {
		o.note(sectionNote, section, names...)
	}
	o.note(reloadNote, "yes", "tout", "log-level", "li", "ls", "le", "lz", "riv", "bgsi", "asi", "ash")
	o.note(aliasNote, "log-level", "li", "ls", "le", "lz")
}

// note gives options a property. Options files that others add call it for their own.
func (o *options) note(key, value string, names ...string) {
	for _, name := range names {
		if err := o.flags.SetAnnotation(name, key, []string{value}); err != nil {
			panic(err) // there is no such option: a mistake in this program that every test meets
		}
	}
}

func (o *options) noted(name, key string) string {
	if values := o.flags.Lookup(name).Annotations[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}

func (o *options) reloadable(name string) bool { return o.noted(name, reloadNote) != "" }

// names returns the options that a configuration can hold, in the order of their definitions.
func (o *options) names() []string {
	var names []string
	o.flags.VisitAll(func(f *pflag.Flag) {
		if !commandLineOnly(f.Name) && o.noted(f.Name, aliasNote) == "" {
			names = append(names, f.Name)
		}
	})
	return names
}

// section is the table that an option may stand in, empty for none.
func (o *options) section(name string) string {
	if noted := o.noted(name, sectionNote); noted != "" {
		return noted
	}
	first, _, _ := strings.Cut(name, "-")
	for _, other := range o.names() {
		if other != name && (other == first || strings.HasPrefix(other, first+"-")) {
			return first
		}
	}
	return ""
}

// secret tells whether the value of an option must not be shown.
func secret(name string) bool {
	words := strings.Split(name, "-")
	return !slices.Contains(words, "file") &&
		slices.ContainsFunc(words, func(w string) bool { return w == "password" || w == "secret" || w == "token" })
}

// inHelp finds the default that a help text tells.
var inHelp = regexp.MustCompile(`\(default ([^)]*)\)`)

// defaultOf is the value that an option has when nobody sets it, empty for none.
func defaultOf(f *pflag.Flag) string {
	if told := inHelp.FindStringSubmatch(f.Usage); told != nil {
		return told[1]
	}
	if kindOf(f) == boolean {
		return "false"
	}
	return f.DefValue
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

func kindOf(f *pflag.Flag) kind {
	switch t := f.Value.Type(); {
	case f.NoOptDefVal == "true" || t == "bool":
		return boolean
	case t == "number" || strings.HasPrefix(t, "int") || strings.HasPrefix(t, "uint") || strings.HasPrefix(t, "float"):
		return number
	}
	return text
}

// nearest is the option whose name is like a misspelt one, empty when there is none within so many letters.
func (o *options) nearest(name string, within int) string {
	best := ""
	for _, candidate := range append(o.names(), databasesKey) {
		if d := letters(name, candidate); d <= within {
			best, within = candidate, d-1
		}
	}
	return best
}

// letters is how many letters are wrong, missing, too many or in each other's place.
func letters(a, b string) int {
	before, last, row := []int(nil), []int(nil), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			same := 1
			if a[i] == b[j] {
				same = 0
			}
			row[j+1] = min(last[j]+same, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
