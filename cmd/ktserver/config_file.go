package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"gotycoon/internal/yrmconf"
)

// A configuration file is TOML. Its keys are the options' names without dashes ("port", "ulog",
// "counter-port"). In a table, the table's name and a dash may be left out ([counter], port), and
// an option may stand in the table of its section ([replication], mhost). An underscore is a dash.
// "databases" is the list of databases.
//
// The dotted keys of yrmcds for counters (counter.enable, counter.max_connections) mean the same
// options, but counters are off until counter.enable is true. A file that is not TOML and has only
// lines NAME = VALUE, values without quotes, is read as a configuration file of yrmcds.
const (
	databasesKey = "databases"
	databaseKey  = "database" // the same, one at a time

	counterSection     = "counter"
	counterEnable      = "counter.enable" // yrmcds' switch; no option corresponds to it
	counterPort        = "counter-port"
	counterDefaultPort = "11215"
)

// configFile is a file of -config on its way into the options.
type configFile struct {
	path      string
	options   *options
	lines     map[string]int // the line of each option that is set
	databases []string
	at        string // source of the databases
	counters  struct{ mentioned, enabled bool }
}

// entry is one setting of a file.
type entry struct {
	key    []string // table and key
	values []string // several only in a list
	list   bool
	kind   kind
	line   int
	dotted bool // outside of any table
}

// readConfig takes the settings of a configuration file.
func (o *options) readConfig(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("-config: %w", err)
	}
	c := &configFile{path: path, options: o, lines: map[string]int{}}
	if err := c.read(content); err != nil {
		return err
	}
	if len(c.databases) > 0 {
		o.from = c.at
		o.setDatabases(c.databases)
	}
	o.from = path
	return c.switchCounters()
}

// read takes a file of either form.
func (c *configFile) read(content []byte) error {
	var document map[string]any
	err := toml.Unmarshal(content, &document)
	if err == nil {
		return c.readTOML(content)
	}
	lines, noLines := yrmconf.Parse(c.path, bytes.NewReader(content))
	if noLines != nil || slices.ContainsFunc(lines, onlyTOML) {
		return c.notTOML(err)
	}
	if lineErr := c.readLines(lines); lineErr != nil {
		return fmt.Errorf("%w (read as lines NAME = VALUE, because it is not TOML: %w)", lineErr, c.notTOML(err))
	}
	return nil
}

// onlyTOML reports whether a line can only be meant as TOML.
func onlyTOML(s yrmconf.Setting) bool {
	v := s.Value
	return strings.HasPrefix(v, "[") || strings.HasPrefix(v, "{") || strings.HasPrefix(v, `"`)
}

// notTOML returns the error of a file that is no TOML, with the line.
func (c *configFile) notTOML(err error) error {
	if wrong, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := wrong.Position()
		return fmt.Errorf("%s:%d: %s", c.path, line, strings.TrimPrefix(wrong.Error(), "toml: "))
	}
	return fmt.Errorf("%s: %w", c.path, err)
}

// readTOML takes the settings of a document that has been parsed without an error.
func (c *configFile) readTOML(content []byte) error {
	var p unstable.Parser
	p.Reset(content)
	var table []string
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind == unstable.Table || e.Kind == unstable.ArrayTable {
			table = keyOf(e)
			continue
		}
		if err := c.takeNode(&p, table, e); err != nil {
			return err
		}
	}
	return p.Error()
}

func keyOf(e *unstable.Node) []string {
	var parts []string
	for it := e.Key(); it.Next(); {
		parts = append(parts, string(it.Node().Data))
	}
	return parts
}

// takeNode takes KEY = VALUE, where the value may be a table.
func (c *configFile) takeNode(p *unstable.Parser, table []string, e *unstable.Node) error {
	key := slices.Concat(table, keyOf(e))
	value := e.Value()
	if value.Kind == unstable.InlineTable {
		for it := value.Children(); it.Next(); {
			if err := c.takeNode(p, key, it.Node()); err != nil {
				return err
			}
		}
		return nil
	}
	first := e.Key()
	first.Next()
	s := entry{key: key, line: p.Shape(first.Node().Raw).Start.Line, dotted: len(table) == 0 && len(key) > 1}
	err := s.read(value)
	if err == nil {
		err = c.take(s)
	}
	if err != nil {
		return fmt.Errorf("%s:%d: %w", c.path, s.line, err)
	}
	return nil
}

// read takes the value: a text, a number, true or false, or a list of texts.
func (s *entry) read(value *unstable.Node) error {
	switch value.Kind {
	case unstable.Array:
		s.list = true
		for it := value.Children(); it.Next(); {
			n := it.Node()
			if n.Kind != unstable.String {
				return fmt.Errorf("%s: is a list of texts", s.key[len(s.key)-1])
			}
			s.values = append(s.values, string(n.Data))
		}
		return nil
	case unstable.String:
		s.kind = text
	case unstable.Bool:
		s.kind = boolean
	case unstable.Integer, unstable.Float:
		s.kind = number
	default:
		return fmt.Errorf("%s: no option has a value of this type", s.key[len(s.key)-1])
	}
	s.values = []string{string(value.Data)}
	if s.kind == number {
		s.values[0] = decimal(s.values[0])
	}
	return nil
}

// decimal returns a number of TOML as an option takes it: without underscores, and in decimal.
func decimal(number string) string {
	if n, err := strconv.ParseInt(number, 0, 64); err == nil {
		return strconv.FormatInt(n, 10)
	}
	return strings.ReplaceAll(number, "_", "")
}

// take puts one setting of a document in its place.
func (c *configFile) take(s entry) error {
	c.options.from = fmt.Sprintf("%s:%d", c.path, s.line)
	key := strings.Join(s.key, ".")
	c.counters.mentioned = c.counters.mentioned || key == counterEnable || s.dotted && s.key[0] == counterSection
	switch {
	case key == databasesKey || key == databaseKey:
		if s.kind != text {
			return fmt.Errorf("%s: is a list of texts", key)
		}
		c.databases, c.at = append(c.databases, s.values...), c.options.from
		return nil
	case key == counterEnable:
		return c.enableCounters(s.values[0])
	}
	name, err := c.option(s.key)
	if err != nil {
		return err
	}
	switch want, given := c.options.named(name).kind(), s.kind; {
	case s.list:
		return fmt.Errorf("%s: is %v, not a list", key, want)
	case want != given && (want != number || given != text): // numbers with units are texts
		return fmt.Errorf("%s: is %v, not %v", key, want, given)
	}
	return c.set(name, key, s.line, s.values[0])
}

// readLines takes the settings of a file of lines NAME = VALUE, values without quotes.
func (c *configFile) readLines(lines []yrmconf.Setting) error {
	for _, s := range lines {
		if err := c.takeLine(s); err != nil {
			return fmt.Errorf("%s:%d: %w", c.path, s.Line, err)
		}
	}
	return nil
}

// takeLine puts one line in its place. Databases may come several times; of several lines with one
// key of the counter document the last one counts.
func (c *configFile) takeLine(s yrmconf.Setting) error {
	c.options.from = fmt.Sprintf("%s:%d", c.path, s.Line)
	key := strings.Split(s.Key, ".")
	ofDocument := key[0] == counterSection && len(key) > 1
	if ofDocument {
		c.counters.mentioned = true
		number, _, _ := strings.Cut(s.Value, "#") // yrmcds reads a number up to the first other character
		s.Value = strings.TrimSpace(number)
	}
	switch s.Key {
	case databaseKey:
		c.databases, c.at = append(c.databases, s.Value), c.options.from
		return nil
	case counterEnable:
		return c.enableCounters(s.Value)
	}
	name, err := c.option(key)
	if err != nil {
		return err
	}
	if ofDocument {
		delete(c.lines, name)
	}
	return c.set(name, s.Key, s.Line, s.Value)
}

// set gives an option its value, once in a file.
func (c *configFile) set(name, key string, line int, value string) error {
	if before, given := c.lines[name]; given {
		return fmt.Errorf("%s: is given in line %d already", key, before)
	}
	c.lines[name] = line
	if err := c.options.flags.Set(name, value); err != nil {
		return fmt.Errorf("%s: %w", key, cause(err))
	}
	return nil
}

// cause returns what is wrong with a value, without pflag's words for command lines.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// option returns the name of the option that a key means.
func (c *configFile) option(key []string) (string, error) {
	o := c.options
	name := strings.NewReplacer(".", "-", "_", "-").Replace(strings.Join(key, "."))
	if name == "counter-stat-interval" { // yrmcds' program and its document spell it differently
		name = "counter-stats-interval"
	}
	if o.named(name) != nil {
		return name, nil
	}
	last := strings.ReplaceAll(key[len(key)-1], "_", "-")
	table := strings.ReplaceAll(strings.Join(key[:len(key)-1], "-"), "_", "-")
	if r := o.named(last); len(key) > 1 && r != nil && r.section == table {
		return last, nil
	}
	return "", c.unknown(key, name, last)
}

// unknown returns the error for a key without an option, which names the option that is probably
// meant.
func (c *configFile) unknown(key []string, name, last string) error {
	const farthest, share = 3, 3
	near := c.options.nearest(name, min(farthest, len(name)/share))
	if near == "" && len(key) > 1 {
		if near = last; c.options.named(last) == nil {
			near = c.options.nearest(last, min(farthest, len(last)/share))
		}
	}
	hint := "of an yrmcds.conf, keep the lines of counters"
	if near != "" {
		hint = fmt.Sprintf("is it %q?", near)
		if section := c.options.section(near); len(key) > 1 && section != "" {
			hint = fmt.Sprintf("is it %q, in the table %q?", near, section)
		}
	}
	return fmt.Errorf("there is no option %q (%s)", strings.Join(key, "."), hint)
}

// section returns the table that an option may stand in, empty for none and for the databases.
func (o *options) section(name string) string {
	if r := o.named(name); r != nil {
		return r.section
	}
	return ""
}

func (c *configFile) enableCounters(value string) error {
	if value != "true" && value != "false" {
		return fmt.Errorf("counter.enable is true or false, not %q", value)
	}
	c.counters.enabled = value == "true"
	return nil
}

// switchCounters turns counter.enable, for which there is no option, into -counter-port: 0 if it is
// false or absent, and the default port of yrmcds if it is true and the file names no port.
func (c *configFile) switchCounters() error {
	flags := c.options.flags
	_, port := c.lines[counterPort]
	switch {
	case !c.counters.mentioned:
		return nil
	case !c.counters.enabled:
		return flags.Set(counterPort, "0")
	case !port:
		return flags.Set(counterPort, counterDefaultPort)
	}
	return nil
}
