package server

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gotycoon/db/expr"
)

// serviceOption is an option of a service. It has no effect while the service is off.
type serviceOption struct {
	name  string
	given bool
	wrong error // why no service can have the value; nil: the value is right
}

// amount is an option for which 0 means the default, or none.
func amount[T ~int | ~int64](name string, value T) serviceOption {
	s := serviceOption{name: name, given: value != 0}
	if value < 0 {
		s.wrong = fmt.Errorf("%s: it cannot be negative", name)
	}
	return s
}

// shortestInterval is the least that yrmcds takes.
const shortestInterval = 10 * time.Second

// interval is an amount of time that is not too short.
func interval(name string, value time.Duration) serviceOption {
	s := amount(name, value)
	if s.given && value < shortestInterval {
		s.wrong = fmt.Errorf("%s: it is at least %v", name, shortestInterval)
	}
	return s
}

// within is an option with a greatest value.
func within(name string, value, most int) serviceOption {
	s := serviceOption{name: name, given: value != 0}
	if value < 0 || value > most {
		s.wrong = fmt.Errorf("%s: %d is not within 0 to %d", name, value, most)
	}
	return s
}

// notNegative is an option whose value is reported when it is negative.
func notNegative(name string, value int64) serviceOption {
	s := serviceOption{name: name, given: value != 0}
	if value < 0 {
		s.wrong = fmt.Errorf("%s: %d is negative", name, value)
	}
	return s
}

// check finds values that no service can have, so that the start fails before anything is opened.
func (c *ServicesConfig) check() error {
	table := c.table()
	for i := range table {
		row := &table[i]
		if wrong := amount(row.portOption(), row.port).wrong; wrong != nil {
			return wrong
		}
		if row.port > math.MaxUint16 {
			return fmt.Errorf("%s: %d is more than %d", row.portOption(), row.port, math.MaxUint16)
		}
	}
	for i := range table {
		for _, o := range table[i].options {
			if o.wrong != nil {
				return o.wrong
			}
		}
	}
	text := c.database()
	if text == "" {
		return nil
	}
	if expr, err := expr.Parse(text); err == nil && !expr.Kind.OnDisk() { // the other errors are found when the database is opened
		return fmt.Errorf("-services: %s is no database file, and what locks, sequences and quotas keep must survive the process", text)
	}
	return nil
}

// notes returns a line for each option of a service that is off.
func (c *ServicesConfig) notes() (notes []string) {
	for _, row := range c.table() {
		for _, o := range row.options {
			if o.given && row.port == 0 {
				notes = append(notes, fmt.Sprintf("%s: has no effect without %s", o.name, row.portOption()))
			}
		}
	}
	return notes
}

// database returns the expression of the services' database. It is empty if no service needs the
// database, and the server is not to keep a copy of a master's.
func (c *ServicesConfig) database() string {
	if c.Database != "" {
		return c.Database
	}
	if slices.ContainsFunc(c.table(), func(r serviceRow) bool { return r.keeps && r.port != 0 }) {
		return DefaultServices
	}
	return ""
}
