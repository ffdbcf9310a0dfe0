package main

import (
	"fmt"
	"strings"

	"gotycoon/internal/yrmconf"
)

// readLines takes the settings of a file of lines NAME = VALUE, values without quotes.
func (c *configFile) readLines(lines []yrmconf.Setting) error {
	for _, s := range lines {
		if err := c.takeLine(s); err != nil {
			return fmt.Errorf("%s:%d: %w", c.path, s.Line, err)
		}
	}
	return nil
}

// takeLine puts one line in its place. Databases may come several times; of several lines with one key of the counter document the
// last one counts.
func (c *configFile) takeLine(s yrmconf.Setting) error {
	c.options.from = fmt.Sprintf("%s:%d", c.path, s.Line)
	key := strings.Split(s.Key, ".")
	ofDocument := key[0] == counterSection && len(key) > 1
	if ofDocument {
		c.counters.mentioned = true
		number, _, _ := strings.Cut(s.Value, "#") // yrmcds reads a number up to what is none
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
