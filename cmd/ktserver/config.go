package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gotycoon/internal/yrmconf"
)

// The keys of a configuration file are the options' names without dashes ("port", "ulog", "counter-port"), "database", which may come
// several times, and those of the counter document. What the command line says counts more.
const (
	databaseKey = "database"

	counterPrefix      = "counter."
	counterEnable      = "counter.enable" // the document's switch; among the options a port is one
	counterPort        = "counter-port"
	counterDefaultPort = "11215"
)

// configFile is a file of -config on its way into the options.
type configFile struct {
	path      string
	options   *options
	given     []string // options of the command line
	databases []string
	counters  struct{ mentioned, enabled bool }
}

// readConfig takes the settings of a configuration file.
func (o *options) readConfig(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("-config: %w", err)
	}
	defer f.Close()
	settings, err := yrmconf.Parse(path, f)
	if err != nil {
		return fmt.Errorf("-config: %w", err)
	}
	c := &configFile{path: path, options: o}
	o.flags.Visit(func(f *pflag.Flag) { c.given = append(c.given, f.Name) })
	for _, s := range settings {
		if err := c.take(s); err != nil {
			return fmt.Errorf("%s:%d: %w", path, s.Line, err)
		}
	}
	if len(c.databases) > 0 {
		o.Databases = c.databases
	}
	return c.switchCounters()
}

// take puts one setting in its place.
func (c *configFile) take(s yrmconf.Setting) error {
	if strings.HasPrefix(s.Key, counterPrefix) {
		c.counters.mentioned = true
		number, _, _ := strings.Cut(s.Value, "#") // yrmcds reads a number up to what is none
		s.Value = strings.TrimSpace(number)
	}
	switch s.Key {
	case databaseKey:
		c.databases = append(c.databases, s.Value)
		return nil
	case counterEnable:
		if s.Value != "true" && s.Value != "false" {
			return fmt.Errorf("counter.enable is true or false, not %q", s.Value)
		}
		c.counters.enabled = s.Value == "true"
		return nil
	}
	name := optionName(s.Key)
	flag := c.options.flags.Lookup(name)
	if flag == nil || name == "config" || name == "help" || name == "version" {
		return fmt.Errorf("there is no option %q (of an yrmcds.conf, keep the lines of counters)", s.Key)
	}
	if slices.Contains(c.given, name) {
		return nil
	}
	if err := c.options.flags.Set(name, s.Value); err != nil {
		return fmt.Errorf("%s: %w", s.Key, err)
	}
	return nil
}

// switchCounters makes the document's switch the port of an option: it has a default port, and is off by default.
func (c *configFile) switchCounters() error {
	flags := c.options.flags
	switch {
	case !c.counters.mentioned || slices.Contains(c.given, counterPort):
		return nil
	case !c.counters.enabled:
		c.options.Services.CounterPort = 0
	case !flags.Changed(counterPort):
		return flags.Set(counterPort, counterDefaultPort)
	}
	return nil
}

// optionName is the option that a key means.
func optionName(key string) string {
	if key == "counter.stat_interval" { // the program's spelling; the document has the other one
		key = "counter.stats_interval"
	}
	return strings.NewReplacer(".", "-", "_", "-").Replace(key)
}
